"""Builds the held-out evaluation set and the demo conversation from evaluation clips (synth.py ... test).
usage: python3 -m training.asr.make_eval CLIPS_PREFIX OUT_DIR [SEED]
       python3 -m training.asr.make_eval conversation OUT_DIR
The first writes short, long and non-speech recordings and manifest.jsonl."""

import json
import os
import random
import subprocess
import sys

import numpy as np

from .data import SR, Augment, Pool
from .synth import Synth, readwav
from .texts import HERE, LANGS


def save(path, x, rate=16000):
    pcm = (np.clip(x, -1, 1) * 32767).astype("<i2").tobytes()
    codec = (
        ["-c:a", "libopus", "-b:a", "28k"]
        if path.endswith(".opus")
        else ["-c:a", "flac", "-compression_level", "12", "-sample_fmt", "s16"]
    )
    subprocess.run(
        ["ffmpeg", "-y", "-v", "error", "-f", "s16le", "-ar", str(rate), "-ac", "1", "-i", "-"]
        + codec
        + ["-map_metadata", "-1", "-fflags", "+bitexact", path],
        input=pcm,
        check=True,
    )


def midi(notes, tempo=500000):
    """tiny one-track MIDI file: notes = [(start, length, key, velocity, channel)], times in ticks of 1/480 beat"""
    ev = []
    for s, l, k, v, c in notes:
        ev += [(s, bytes([0x90 | c, k, v])), (s + l, bytes([0x80 | c, k, 0]))]
    ev.sort(key=lambda e: (e[0], e[1][0] & 0x10))

    def var(n):
        b = [n & 127]
        while n > 127:
            n >>= 7
            b.append(n & 127 | 128)
        return bytes(b[::-1])

    t, d = 0, b"\0\xff\x51\x03" + tempo.to_bytes(3, "big")
    for s, b in ev:
        d += var(s - t) + b
        t = s
    d += b"\0\xff\x2f\0"
    return b"MThd\0\0\0\6\0\0\0\1\1\xe0MTrk" + len(d).to_bytes(4, "big") + d


def music(seconds, seed=3, program=0):
    r = random.Random(seed)
    notes, scale = [], [60, 62, 64, 65, 67, 69, 71, 72, 74, 76]
    i, beats = 4, int(seconds * 2) + 2
    for b in range(0, beats * 2):
        i = max(0, min(9, i + r.choice([-2, -1, -1, 1, 1, 2])))
        if r.random() < 0.85:
            notes.append((b * 240, 220, scale[i], 80 + r.randint(0, 25), 0))
        if b % 4 == 0:
            root = [48, 53, 55, 45][(b // 4) % 4]
            notes += [(b * 240, 900, root + k, 60, 1) for k in (0, 4 if root != 45 else 3, 7)]
    open("/tmp/m.mid", "wb").write(midi(notes))
    subprocess.run(
        [
            "fluidsynth",
            "-ni",
            "-q",
            "-F",
            "/tmp/m.wav",
            "-r",
            "16000",
            "-O",
            "s16",
            "/usr/share/sounds/sf2/FluidR3_GM.sf2",
            "/tmp/m.mid",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    x, sr = readwav("/tmp/m.wav")
    x = x[: int(seconds * SR)].astype(np.float32)
    x = x / np.abs(x).max()
    n = int(0.3 * SR)
    x[-n:] *= np.linspace(1, 0, n)
    return x * 0.4


def phone_ring(seconds=4.0):
    """Two bells struck 20 times a second, rings of 1.6 s with pauses of 0.6 s."""
    n = int(seconds * SR)
    t = np.arange(n) / SR
    x = np.zeros(n, np.float32)
    k = 0
    while k * 0.045 < seconds:
        s = int(k * 0.045 * SR)
        tt = t[: n - s]
        f0 = [1310, 1640][k % 2]
        x[s:] += (
            sum(a * np.sin(2 * np.pi * f0 * m * tt) for m, a in ((1, 1), (1.52, 0.6), (2.77, 0.4), (3.4, 0.25)))
            * np.exp(-tt * 14)
        ).astype(np.float32)
        k += 1
    gate = ((t % 2.2) < 1.6).astype(np.float32)
    gate = np.convolve(gate, np.ones(400) / 400, "same").astype(np.float32)
    x *= gate
    return 0.3 * x / np.abs(x).max()


def conversation(out):
    s = Synth(random.Random(1))
    A, B = ("rhvoice", "bdl", dict(pitch=100, rate=100)), ("pico", "en-US", dict(pitch=105, speed=100))
    turns = json.load(open(HERE + "/conversation_turns.json"))
    parts, pos, rec, ev, rttm = [], 0.0, [], [], []

    def add(x):
        nonlocal pos
        parts.append(x.astype(np.float32))
        pos += len(x) / SR

    m = music(5.0, 11)
    ev.append(dict(label="Music", start=0.0, end=5.0))
    add(m)
    add(np.zeros(int(0.7 * SR)))
    for who, sents in turns:
        if who == "ring":
            add(np.zeros(int(0.5 * SR)))
            ev.append(dict(label="Telephone bell ringing", start=round(pos, 2), end=round(pos + 3.8, 2)))
            add(phone_ring(3.8))
            add(np.zeros(int(0.6 * SR)))
            continue
        e, v, fix = A if who == "A" else B
        st = pos
        for t in sents:
            x, _ = s.clip(t, "en", e, v, **fix)
            x = x.astype(np.float32) / 32768
            x = x * (0.08 / np.sqrt((x**2).mean()))
            a = pos
            add(x)
            rec.append(dict(start=round(a, 2), end=round(pos, 2), speaker=who, text=t))
            add(np.zeros(int(0.35 * SR)))
        rttm.append(dict(speaker=who, start=round(st, 2), end=round(pos - 0.35, 2)))
        add(np.zeros(int(0.35 * SR)))
    add(np.zeros(int(0.5 * SR)))
    x = np.concatenate(parts)
    x = x + np.random.RandomState(1).randn(len(x)).astype(np.float32) * 3e-4
    save(out + "/conversation.flac", x)
    json.dump(
        dict(
            file="conversation.flac",
            language="en",
            sample_rate=16000,
            duration=round(len(x) / SR, 2),
            speakers={"A": 'RHVoice "bdl", male', "B": "SVOX Pico en-US, female"},
            text=" ".join(r["text"] for r in rec),
            sentences=rec,
            turns=rttm,
            events=ev,
        ),
        open(out + "/conversation.json", "w"),
        indent=1,
    )


def evalset(prefix, out, seed=77):
    rng = random.Random(seed)
    pool, aug = Pool([prefix + ".jsonl"]), Augment(5 if seed == 77 else seed)
    man = open(out + "/manifest.jsonl", "w")
    used = set()

    def pick(lang, lo=1.0, hi=9.0):
        while True:
            i = rng.choice(pool.bylang[lang])
            if i not in used and lo * SR < pool.items[i]["n"] < hi * SR:
                used.add(i)
                return pool.items[i]

    def dirty(x, kind):
        if kind == "room":
            x = np.convolve(x, aug.rirs[7])[: len(x)]
        if kind in ("noise", "room"):
            x = x + aug.noises[1][: len(x)] * np.sqrt((x**2).mean()) * 10 ** (-18 / 20)
        return x

    for lang in LANGS:
        for k in range(60 if lang == "en" else 12):
            d = pick(lang)
            x = np.pad(pool.wav(d), (int(SR * 0.25), int(SR * 0.35))) * 0.6
            kind = ["clean", "clean", "noise", "room"][k % 4]
            x = dirty(x, kind)
            f = f"short/{lang}_{k:02d}." + ("flac" if kind == "clean" else "opus")
            save(f"{out}/{f}", x)
            man.write(
                json.dumps(
                    dict(
                        file=f,
                        kind="short",
                        text=d["text"],
                        language=lang,
                        voice=d["voice"],
                        condition=kind,
                        duration=round(len(x) / SR, 2),
                        sentences=[dict(start=0.25, end=round(0.25 + d["n"] / SR, 2), text=d["text"])],
                    ),
                    ensure_ascii=False,
                )
                + "\n"
            )
    for k, (lang, secs) in enumerate([("en", 150), ("en", 90), ("en", 70), ("es", 70), ("de", 70), ("zh", 60)]):
        parts, sents, pos = [np.zeros(SR // 2, np.float32)], [], 0.5
        while pos < secs:
            d = pick(lang, 1.0, 8.0)
            x = pool.wav(d) * 0.5
            sents.append(dict(start=round(pos, 2), end=round(pos + len(x) / SR, 2), text=d["text"], voice=d["voice"]))
            g = rng.choice([0.4, 0.6, 0.9, 1.4, 2.5, 5.0 if rng.random() < 0.4 else 1.0])
            parts += [x, np.zeros(int(g * SR), np.float32)]
            pos += len(x) / SR + g
        x = np.concatenate(parts)
        x = x + aug.noises[1][np.arange(len(x)) % len(aug.noises[1])] * (0 if k in (0, 5) else 1.5e-3)
        f = f"long/{lang}_{k}.opus"
        save(f"{out}/{f}", x)
        man.write(
            json.dumps(
                dict(
                    file=f,
                    kind="long",
                    text=(" " if lang != "zh" else "").join(s["text"] for s in sents),
                    language=lang,
                    voice="several",
                    duration=round(len(x) / SR, 2),
                    sentences=sents,
                ),
                ensure_ascii=False,
            )
            + "\n"
        )
    t = np.arange(SR * 6) / SR
    w, pink = aug.noises[0], aug.noises[1]
    clips = [
        ("silence", np.zeros(SR * 5)),
        ("silence_long", np.zeros(SR * 35)),
        ("white_quiet", w[: SR * 5] * 0.003),
        ("white_loud", w[: SR * 6] * 0.15),
        ("brown", pink[: SR * 6] * 0.1),
        ("brown_long", pink[: SR * 32] * 0.05),
        ("hum50", aug.noises[3][: SR * 5] * 0.1),
        ("tone440", np.sin(2 * np.pi * 440 * t) * 0.3),
        ("tone1000_beeps", np.sin(2 * np.pi * 1000 * t) * 0.3 * ((t % 1) < 0.3)),
        ("sweep", np.sin(2 * np.pi * (100 * t + 300 * t * t)) * 0.3),
        ("dtmf", (np.sin(2 * np.pi * 770 * t) + np.sin(2 * np.pi * 1336 * t)) * 0.2 * ((t % 0.5) < 0.25)),
        ("siren", np.sin(2 * np.pi * 700 * t + 80 * np.sin(2 * np.pi * 0.5 * t)) * 0.3),
        ("ring", phone_ring(6)),
        ("music_piano", music(8, 5)),
        ("music_piano2", music(8, 9)),
        ("music_notes", aug.noises[4][: SR * 8] * 0.1),
        ("music_notes2", aug.noises[5][: SR * 8] * 0.1),
        ("clicks", (np.random.RandomState(1).rand(SR * 5) < 3e-4) * 0.5),
        ("noise_bursts", w[: SR * 6] * 0.2 * (np.sin(2 * np.pi * 0.7 * t) > 0.6)),
        ("fan", pink[: SR * 6] * 0.06 + np.sin(2 * np.pi * 120 * t) * 0.02),
    ]
    for name, x in clips:
        f = f"nonspeech/{name}.flac"
        if not name.startswith(("silence", "tone", "dtmf")):
            f = f"nonspeech/{name}.opus"
        save(f"{out}/{f}", np.asarray(x, np.float32))
        man.write(
            json.dumps(
                dict(
                    file=f,
                    kind="nonspeech",
                    text="",
                    language="",
                    voice="",
                    duration=round(len(x) / SR, 2),
                    sentences=[],
                )
            )
            + "\n"
        )


if __name__ == "__main__":
    if sys.argv[1] == "conversation":
        conversation(sys.argv[2])
    else:
        for d in ("short", "long", "nonspeech"):
            os.makedirs(f"{sys.argv[2]}/{d}", exist_ok=True)
        evalset(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
