"""conversations.py VOICES OUT [--count 20] [--seed 1]: conversations with known turns, made of short
recordings of many people.

VOICES is a folder with voices.tsv: one line per file (file, speaker, ..., licence), the speaker's
corpus being the part before the first underscore. The people are halved by a hash of their names,
so that rules are chosen on one half (OUT/tune) and measured on the other (OUT/figure). A
conversation has 2 to 6 people of one corpus, who speak 1.2 to 5 s in turn, with pauses and some
overlap; every second one is in a room, with noise of 18 to 30 dB. Each has NAME.flac and NAME.rttm,
and one line in truth.jsonl. The same seed gives the same files. Needs ffmpeg, numpy, scipy and
soundfile.
"""

import argparse
import collections
import csv
import hashlib
import json
import pathlib
import subprocess

import numpy as np
import soundfile
from scipy.signal import fftconvolve

RATE = 16000
LEAST_SECONDS = 6  # of recordings that a person must have


def people(folder):
    """Returns corpus -> half -> speaker -> files."""
    seconds, files = collections.Counter(), collections.defaultdict(list)
    with open(folder / "voices.tsv", newline="") as f:
        for row in csv.DictReader(f, delimiter="\t"):
            seconds[row["speaker"]] += float(row["seconds"])
            files[row["speaker"]].append(folder / row["file"])
    out = collections.defaultdict(lambda: {"tune": {}, "figure": {}})
    for speaker, list_ in sorted(files.items()):
        if seconds[speaker] >= LEAST_SECONDS:
            half = "tune" if hashlib.md5(speaker.encode()).digest()[0] & 1 else "figure"
            out[speaker.split("_")[0]][half][speaker] = list_
    return out


def sound(path):
    raw = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", path, "-f", "f32le", "-ac", "1", "-ar", str(RATE), "-"],
        capture_output=True,
        check=True,
    ).stdout
    return np.frombuffer(raw, np.float32)


def level(x):
    """Returns the mean level of 20 ms frames, one each 10 ms."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, 160), 320)[::160]
    return np.sqrt((frames**2).mean(1) + 1e-12)


def turns_of(files, rng):
    """Yields pieces of 1.2 to 5 s, cut where the recording is quiet, each once."""
    order = list(files)
    while True:
        rng.shuffle(order)
        for path in order:
            x, at = sound(path), 0
            while len(x) - at >= int(1.2 * RATE):
                want = int(rng.uniform(1.2, 5) * RATE)
                end = len(x)
                if end - at - want >= int(1.2 * RATE):
                    near = slice((at + want) // 160 - 20, (at + want) // 160 + 20)
                    end = (near.start + int(np.argmin(level(x)[near]))) * 160
                yield x[at:end]
                at = end


def speech(x):
    """Returns the stretches of sound; pauses below 0.3 s are part of them."""
    loud = level(x)
    on = np.flatnonzero(loud > 0.03 * np.quantile(loud, 0.95))
    out = []
    for i in on:
        if out and i - out[-1][1] <= 30:
            out[-1][1] = i
        else:
            out.append([i, i])
    return [(a * 160, min((b + 1) * 160, len(x))) for a, b in out if b - a >= 5]


def room(rng):
    """Returns an impulse response: the direct sound and a decaying tail."""
    reverberation = rng.uniform(0.2, 0.6)
    t = np.arange(int(reverberation * RATE)) / RATE
    tail = rng.standard_normal(len(t)) * 10 ** (-3 * t / reverberation)
    tail *= 10 ** (-rng.uniform(0, 8) / 20) / np.sqrt((tail**2).sum())
    tail[0] = 1
    return tail


def conversation(speakers, rng):
    """Returns the sound and its turns (start, end, speaker)."""
    size = min(int(rng.integers(2, 7)), len(speakers))
    who = list(rng.choice(sorted(speakers), size, replace=False))
    inside = rng.random() < 0.5
    voices = {s: turns_of(speakers[s], rng) for s in who}
    rooms = {s: room(rng) if inside else np.ones(1) for s in who}
    gains = {s: 10 ** (rng.uniform(-6, 6) / 20) for s in who}
    overlaps = rng.random() < 0.6
    count = int(rng.integers(max(8, 4 * size), max(14, 7 * size)))
    end, x, turns, last = int(0.3 * RATE), np.zeros(0, np.float32), [], None
    weights = rng.dirichlet(np.full(size, 3))
    for n in range(count):
        others = weights * [w != last for w in who]
        s = who[n] if n < size else str(rng.choice(who, p=others / others.sum()))
        y = next(voices[s])
        y = y / np.sqrt((y**2).mean() + 1e-9) * 0.05 * gains[s]
        gap = rng.uniform(-1.5, -0.2) if overlaps and rng.random() < 0.25 else rng.uniform(0.05, 0.9)
        start = max(end + int(gap * RATE), 0)
        turns += [(start + a, start + b, s) for a, b in speech(y)]
        wet = fftconvolve(y, rooms[s])
        x = np.pad(x, (0, max(0, start + len(wet) - len(x))))
        x[start : start + len(wet)] += wet
        end, last = max(end, start + len(y)), s
    if inside:
        noise = np.cumsum(rng.standard_normal(len(x)))
        noise = noise - fftconvolve(noise, np.ones(400) / 400, "same") + 3 * rng.standard_normal(len(x))
        x = x + noise / noise.std() * x.std() * 10 ** (-rng.uniform(18, 30) / 20)
    return x / np.abs(x).max() * 0.7, turns, inside


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("voices", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--count", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    corpora = people(a.voices)
    for half in ("tune", "figure"):
        folder = a.out / half
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng([a.seed, half == "tune"])
        usable = sorted(c for c, halves in corpora.items() if len(halves[half]) >= 4)
        lines = []
        for n in range(a.count):
            corpus = usable[n % len(usable)]
            x, turns, inside = conversation(corpora[corpus][half], rng)
            name = f"{n:02d}_{corpus}"
            soundfile.write(folder / f"{name}.flac", x, RATE)
            rows = [
                f"SPEAKER {name} 1 {s / RATE:.3f} {(e - s) / RATE:.3f} <NA> <NA> {w} <NA> <NA>" for s, e, w in turns
            ]
            (folder / f"{name}.rttm").write_text("\n".join(rows) + "\n")
            lines.append(
                {
                    "file": f"{name}.flac",
                    "rttm": f"{name}.rttm",
                    "speakers": len({w for _, _, w in turns}),
                    "room": bool(inside),
                    "duration_s": round(len(x) / RATE, 3),
                }
            )
        (folder / "truth.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
