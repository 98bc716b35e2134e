"""Recordings of single voices, to measure the recognition of known voices.

usage: python3 -m training.sound.make_voices SPEECHDIRS OUTDIR SPLIT[,SPLIT] [SECONDS]
Writes VOICE_N.flac (16 kHz): for each voice of the splits up to four recordings of different sentences,
each of at least SECONDS (8), with a soft room noise.
"""

import os
import sys

import numpy as np
import soundfile as sf

from .corpus import Speech, room_noise
from .dsp import SR, normal


def main() -> None:
    dirs, out, splits, seconds = (
        sys.argv[1].split(","),
        sys.argv[2],
        set(sys.argv[3].split(",")),
        float((sys.argv[4:] + [8])[0]),
    )
    os.makedirs(out, exist_ok=True)
    sp, r = Speech(dirs, splits), np.random.default_rng(5)
    for name in sp.names:
        clips, k = [int(i) for i in r.permutation(sp.spk[name])], 0
        while clips and k < 4:
            parts = []
            while clips and sum(map(len, parts)) < seconds * SR:
                parts += [sp.wav(clips.pop()), np.zeros(int(r.uniform(0.3, 0.8) * SR), np.float32)]
            y = np.concatenate(parts)
            if len(y) < seconds * SR:
                break
            y = y + normal(room_noise(r, len(y)), 0.08 * 10 ** (-r.uniform(20, 40) / 20))
            sf.write(f"{out}/{name}_{k}.flac", y * (0.5 / np.abs(y).max()), SR)
            k += 1


if __name__ == "__main__":
    main()
