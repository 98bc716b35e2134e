"""Clips for every synthesised class.

usage: make_events.py OUTDIR CLIPS HELD [negatives]
CLIPS for training and HELD held-out ones per class of events.CLASSES, or of
negatives.NEGATIVES; writes events.i16 (16 kHz int16) and events.json
[{class, split, off, len}].
"""
import json
import os
import sys
import zlib

import numpy as np
from dsp import *
from events import CLASSES
from negatives import NEGATIVES

SEC = 3.2


def finish(r, x, silent):
    """Colour, room and level, as a microphone would add."""
    x = np.asarray(x, np.float32)
    if not silent:
        if r.random() < .5:
            x = tilt(x, r.uniform(-8, 8))
        if r.random() < .4:
            x = convolve(x, room(r))
        x = normal(x, .1)
        k = .98 / max(1e-6, np.abs(x).max())
        x = x * min(1, k)
        x = x + (r.standard_normal(len(x)) * 10 ** r.uniform(-5, -3.3)).astype(np.float32)
    return (np.clip(x, -1, 1) * 32767).astype(np.int16)


def clip(name, seed, n):
    r = np.random.default_rng(seed)
    return (CLASSES | NEGATIVES)[name][0](r, n), r


def main():
    OUT, NTR, NHO = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.makedirs(OUT, exist_ok=True)
    f, index, off = open(f"{OUT}/events.i16", "wb"), [], 0
    n = int(SEC * SR)
    for name, (g, _) in (NEGATIVES if "negatives" in sys.argv[4:] else CLASSES).items():
        for split, cnt, base in (("train", NTR, 0), ("held", NHO, 10 ** 6)):
            per = (6 if name in NEGATIVES else 15) if getattr(g, "midi", False) else 1
            for k in range(0, cnt, per):
                x, r = clip(name, [zlib.crc32(name.encode()), base + k], n * per)
                for j in range(min(per, cnt - k)):
                    y = finish(r, x[j * n:(j + 1) * n], name == "Silence")
                    f.write(y.tobytes())
                    index.append({"class": name, "split": split, "off": off, "len": len(y)})
                    off += len(y)
        print(name, off / SR / 60, flush=True)
    json.dump(index, open(f"{OUT}/events.json", "w"))


if __name__ == "__main__":
    main()
