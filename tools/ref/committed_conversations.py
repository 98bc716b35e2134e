"""committed_conversations.py VOICES OUT [--seed 24]: the 24 conversations of testdata/conversations.

VOICES is the folder that conversations.py takes. Of its recordings only those of LICENSES are used. The
people are halved by the same hash: twelve conversations of one half (tune_) are for choosing rules, twelve
of the other (figure_) for measuring. Each has the people, corpus, room and tracks of its line in PLAN. No
piece of sound occurs twice; a conversation ends when most of its people have nothing left, or at SECONDS.

Each has NAME.opus, NAME.rttm and a line in tune.jsonl or figure.jsonl, manifests of `otograph
bench`. Of two tracks, the first has the near people, the second the others. In every second such
conversation the first track also has the loudspeaker's echo of the second. The same seed gives the
same samples. Needs ffmpeg with libopus, numpy and scipy.
"""

import argparse
import csv
import functools
import json
import pathlib
import subprocess

import conversations
import numpy as np
from conversations import RATE, room, speech
from scipy.signal import fftconvolve

LICENSES = {"alnum": "MIT", "dsp20": "MIT", "asc": "CC BY 4.0", "gsc": "CC BY 4.0"}
LANGUAGES = {"alnum": "en", "dsp20": "zh", "asc": "ar", "gsc": "en"}
SECONDS = 54
PLAN = [  # people, corpus, in a room, tracks
    (2, "asc", False, 1),
    (2, "dsp20", True, 2),
    (2, "alnum", True, 1),
    (3, "dsp20", True, 1),
    (3, "asc", False, 2),
    (4, "alnum", False, 1),
    (4, "dsp20", False, 1),
    (5, "asc", True, 1),
    (5, "gsc", False, 1),
    (6, "dsp20", True, 2),
    (7, "alnum", True, 1),
    (8, "asc", False, 1),
]


def people(folder, half):
    """Returns corpus -> speaker -> rows of voices.tsv, of the recordings that may be distributed."""
    allowed = conversations.people(folder)
    out = {corpus: {s: [] for s in allowed[corpus][half]} for corpus in LICENSES}
    with open(folder / "voices.tsv", newline="") as f:
        for row in csv.DictReader(f, delimiter="\t"):
            corpus = row["speaker"].split("_")[0]
            if corpus in out and row["licence"].startswith(LICENSES[corpus]) and row["speaker"] in out[corpus]:
                out[corpus][row["speaker"]].append(row)
    return out


def noise(n, rng):
    """Returns the murmur of a room."""
    x = np.cumsum(rng.standard_normal(n))
    return x - fftconvolve(x, np.ones(400) / 400, "same") + 3 * rng.standard_normal(n)


def echo(rng):
    """Returns the impulse response from the loudspeaker to the other track's microphone."""
    delay = int(rng.uniform(0.02, 0.12) * RATE)
    return np.concatenate([np.zeros(delay), room(rng)]) * 10 ** (-rng.uniform(14, 22) / 20)


def conversation(pieces, inside, tracks, leaks, rng):
    """Returns the samples [tracks, n] and the turns (start, end, speaker).

    pieces maps each speaker to the pieces of sound with the speaker's voice.
    """
    who = sorted(pieces)
    rooms = {s: room(rng) if inside else np.ones(1) for s in who}
    gains = {s: 10 ** (rng.uniform(-6, 6) / 20) for s in who}
    track = {s: i * tracks // len(who) for i, s in enumerate(who)}
    end, x, turns, last = int(0.3 * RATE), np.zeros((tracks, 0)), [], None
    while end < SECONDS * RATE:
        left = [s for s in who if pieces[s] and s != last]
        if len(left) + (last is not None and bool(pieces[last])) < max(2, (len(who) + 1) // 2):
            break
        silent = [s for s in left if all(t[2] != s for t in turns)]
        s = str(rng.choice(silent or left))
        y = pieces[s].pop()
        y = y / np.sqrt((y**2).mean() + 1e-9) * 0.05 * gains[s]
        gap = rng.uniform(-1.5, -0.2) if rng.random() < 0.2 else rng.uniform(0.05, 0.9)
        start = max(end + int(gap * RATE), 0)
        turns += [(start + a, start + b, s) for a, b in speech(y)]
        wet = fftconvolve(y, rooms[s])
        x = np.pad(x, ((0, 0), (0, max(0, start + len(wet) - x.shape[1]))))
        x[track[s], start : start + len(wet)] += wet
        end, last = max(end, start + len(y)), s
    if leaks:
        x[0] += fftconvolve(x[1], echo(rng))[: x.shape[1]]
    if inside:
        loud = x.std()
        for t in range(tracks):
            murmur = noise(x.shape[1], rng)
            x[t] += murmur / murmur.std() * loud * 10 ** (-rng.uniform(18, 30) / 20)
    return x / np.abs(x).max() * 0.7, turns


def pieces_of(rows, folder, rng):
    """Returns the pieces of a person's recordings, each once, in a random order."""
    files = [folder / row["file"] for row in rows]
    whole = sum(len(conversations.sound(f)) for f in files)
    out, taken = [], 0
    for piece in conversations.turns_of(files, rng):
        out.append(piece)
        taken += len(piece)
        if len(out) >= 40 or taken > 0.8 * whole:
            break
    return out


def encode(path, x):
    """Writes Ogg Opus of 16 kbit/s, of 24 kbit/s for two tracks."""
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-f", "f32le", "-ar", str(RATE), "-ac", str(len(x)), "-i", "-"]
        + ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags", "+bitexact"]
        + ["-c:a", "libopus", "-b:a", f"{8 + 8 * len(x)}k", "-mapping_family", "255" if len(x) > 1 else "0", path],
        input=x.T.astype(np.float32).tobytes(),
        check=True,
    )


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("voices", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=24)
    a = p.parse_args()
    conversations.sound = functools.cache(conversations.sound)
    a.out.mkdir(parents=True, exist_ok=True)
    for half in ("tune", "figure"):
        rng = np.random.default_rng([a.seed, half == "tune"])
        corpora, lines, heard, calls = people(a.voices, half), [], {c: set() for c in LICENSES}, 0
        for n, (size, corpus, inside, tracks) in enumerate(PLAN):
            fresh = sorted(set(corpora[corpus]) - heard[corpus])
            again = sorted(heard[corpus])
            rng.shuffle(fresh)
            rng.shuffle(again)
            who = (fresh + again)[:size]
            heard[corpus] |= set(who)
            calls += tracks > 1
            pieces = {s: pieces_of(corpora[corpus][s], a.voices, rng) for s in who}
            x, turns = conversation(pieces, inside, tracks, tracks > 1 and calls % 2 == 1, rng)
            name = f"{half}_{n + 1:02d}_{corpus}"
            encode(a.out / f"{name}.opus", x)
            rows = [
                f"SPEAKER {name} 1 {s / RATE:.3f} {(e - s) / RATE:.3f} <NA> <NA> {w} <NA> <NA>" for s, e, w in turns
            ]
            (a.out / f"{name}.rttm").write_text("\n".join(rows) + "\n")
            line = {"file": f"{name}.opus", "rttm": f"{name}.rttm", "language": LANGUAGES[corpus]}
            line |= {"speakers": len({w for *_, w in turns}), "room": inside, "tracks": tracks}
            line["duration_s"] = round(x.shape[1] / RATE, 3)
            lines.append(json.dumps(line))
        (a.out / f"{half}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
