"""echoes.py VOICES OUT [--count 36] [--seed 33] [--half figure]: calls of a minute on two channels,
made of short recordings of two people of one half (conversations.py halves them). In two of four
calls the second channel also has the first person, through a loudspeaker and a room; one has
crosstalk of 20 dB in both directions, and one has neither. Each is NAME.wav and a line of
truth.jsonl with, for each channel, the samples in which its own person speaks (own), the other one
is repeated (echo), and both (speech). The same seed gives the same files. Needs ffmpeg, numpy,
scipy and soundfile.
"""

import argparse
import json
import pathlib

import numpy as np
import soundfile
from conversations import RATE, people, sound
from scipy.signal import fftconvolve

SECONDS = 60
KINDS = ["echo", "echo", "crosstalk", "neither"]
CORPORA = ["hyke", "alnum", "inemo", "azdig", "dsp20", "fdu25", "bndig"]
FRAME = RATE // 100


def active(x):
    """Returns whether there is sound, by frame of 10 ms; pauses below 0.1 s are part of it."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, FRAME), 2 * FRAME)[::FRAME][: len(x) // FRAME]
    level = np.sqrt((frames**2).mean(1) + 1e-12)
    on = level > 0.05 * np.quantile(level, 0.95)
    wide = np.convolve(on, np.ones(11), "full")[: len(on)] > 0
    return np.convolve(~wide, np.ones(11), "full")[10 : 10 + len(on)] == 0


def spans(mask):
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return (edges.reshape(-1, 2) * FRAME).tolist()


def turns(files, rng):
    """Returns the two people's own sound: by turns, of which 30 % begin before the last one ends."""
    own, at, who = [np.zeros(SECONDS * RATE), np.zeros(SECONDS * RATE)], RATE // 2, 0
    while True:
        x = sound(files[who][rng.integers(len(files[who]))])
        x = (x / np.sqrt((x**2).mean()) * 0.05)[: int(rng.uniform(1.5, 5) * RATE)]
        if at + len(x) > SECONDS * RATE:
            return own
        own[who][at : at + len(x)] += x
        gap = rng.uniform(-2, -0.5) if rng.random() < 0.3 else rng.uniform(0.1, 0.9)
        at = max(0, at + len(x) + int(gap * RATE))
        if rng.random() < 0.85:
            who = 1 - who
        else:
            at += int((0.3 if gap > 0 else 2) * RATE)


def late(x, seconds, decibels):
    n = int(seconds * RATE)
    return np.concatenate([np.zeros(n), x])[: len(x)] * 10 ** (decibels / 20)


def room(rng):
    """Returns an impulse response of unit power: the direct sound and a decaying tail."""
    reverberation = rng.uniform(0.2, 0.6)
    t = np.arange(int(reverberation * RATE)) / RATE
    tail = rng.standard_normal(len(t)) * 10 ** (-3 * t / reverberation)
    tail *= 10 ** (-rng.uniform(0, 8) / 20) / np.sqrt((tail**2).sum())
    tail[0] = 1
    return tail / np.sqrt((tail**2).sum())


def call(files, kind, rng):
    """Returns the channels, and by channel and frame: own sound, repeated sound."""
    own = turns(files, rng)
    speaks = [active(x) for x in own]
    own[1] *= 10 ** (rng.uniform(-6, 6) / 20)
    channels = [x + rng.standard_normal(len(x)) * 10 ** (-rng.uniform(60, 75) / 20) for x in own]
    repeated = [np.zeros_like(s) for s in speaks]
    if kind == "echo":
        delay = rng.uniform(0.02, 0.3)
        channels[1] = channels[1] + late(fftconvolve(own[0], room(rng))[: len(own[0])], delay, rng.uniform(-30, -6))
        shift = round(delay * RATE / FRAME)
        repeated[1][shift:] = speaks[0][:-shift]
    if kind == "crosstalk":
        channels = [channels[c] + late(own[1 - c], 0.0025, -20) for c in (0, 1)]
        repeated = speaks[::-1]
    return np.stack(channels, 1), speaks, repeated


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("voices", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--count", type=int, default=36)
    p.add_argument("--seed", type=int, default=33)
    p.add_argument("--half", choices=["tune", "figure"], default="figure")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    rng, corpora, lines = np.random.default_rng(a.seed), people(a.voices), []
    known = {s: files for c in CORPORA for s, files in corpora[c][a.half].items()}
    for n in range(a.count):
        kind = KINDS[n % len(KINDS)]
        pair = rng.choice(sorted(known), 2, replace=False)
        x, own, echo = call([known[s] for s in pair], kind, rng)
        name = f"{n:02d}_{kind}.wav"
        soundfile.write(a.out / name, x / np.abs(x).max() * 0.9, RATE, subtype="FLOAT")
        both = [spans(s | e) for s, e in zip(own, echo, strict=True)]
        line = {"file": name, "kind": kind, "speech": both}
        line |= {"own": [spans(s) for s in own], "echo": [spans(e) for e in echo]}
        lines.append(json.dumps(line) + "\n")
    (a.out / "truth.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main()
