"""Conversations of voices held out of training, with overlapping speech and the times of the speakers.

usage: python3 -m training.sound.make_overlap SPEECHDIRS OUTDIR [COUNT [SEED [round]]]
Writes ovN.flac (16 kHz), ovN.rttm and manifest.json: 2 to 5 voices, 5 to 25 % of the speech overlapped.
With "round" each voice takes one of the first turns, like people who introduce themselves; without
it a voice may speak only a word while another speaks.
"""

import json
import os
import sys

import numpy as np
import soundfile as sf

from .corpus import Speech, room_noise
from .dsp import SR, activity, normal, put, runs


def conversation(
    r: np.random.Generator, sp: Speech, count: int, share: float, seconds: float, introduced: bool
) -> tuple[np.ndarray, list[tuple[float, float, int]], list[str], float]:
    """(wave, turns [start, end, voice]) of `count` voices; the share of overlap is approached turn by turn."""
    recorded = [str(b) for b in r.permutation(sorted(b for b in sp.bases if not b.startswith("es")))]
    variants = [str(b) for b in r.permutation(sorted(b for b in sp.bases if b.startswith("es")))]
    order = recorded[: max(1, count - 2)] + variants  # recorded voices and one or two of espeak-ng
    voices = [str(r.choice(sp.bases[b])) for b in order[:count]]
    y, act = np.zeros(int((seconds + 15) * SR), np.float32), np.zeros((count, int((seconds + 15) * 100)), bool)
    p, last = r.uniform(0.2, 1.0), -1
    waiting = r.permutation(count).tolist() if introduced else []
    while p < seconds:
        v = waiting.pop() if waiting else int(r.choice([i for i in range(count) if i != last]))
        x = np.concatenate([sp.wav(int(k)) for k in r.choice(sp.spk[voices[v]], int(r.integers(1, 3)))])
        x = x * 10 ** (r.uniform(-3, 3) / 20)
        a = activity(x, close=0.3)
        put(y, act, v, x, a, p)
        end = p + len(x) / SR
        both, some = (act.sum(0) > 1).sum(), max(1, (act.sum(0) > 0).sum())
        want = both / some < share
        if want and r.random() < 0.4 and end - p > 2.5:
            u = int(r.choice([i for i in range(count) if i != v]))
            x = sp.wav(int(r.choice(sp.spk[voices[u]])))[: int(r.uniform(0.7, 1.6) * SR)]
            put(y, act, u, x, activity(x, close=0.3), p + r.uniform(0.8, end - p - 1.2))
        last = v
        p = end + (-min(r.uniform(0.6, 3.0), 0.6 * len(x) / SR) if want else r.uniform(0.15, 0.9))
    y = y[: int((np.flatnonzero(act.any(0))[-1] / 100 + 0.8) * SR)]
    y = y + normal(room_noise(r, len(y)), 0.08 * 10 ** (-r.uniform(18, 35) / 20))
    y = y * (0.7 / np.abs(y).max())
    turns = sorted((s, e, v) for v in range(count) for s, e in runs(act[v]))
    return (
        y.astype(np.float32),
        turns,
        [(voices[v]) for v in range(count)],
        float((act.sum(0) > 1).sum() / (act.sum(0) > 0).sum()),
    )


def main() -> None:
    dirs, out, count, seed = (
        sys.argv[1].split(","),
        sys.argv[2],
        int((sys.argv[3:] + [12])[0]),
        int((sys.argv[4:] + [77])[0]),
    )
    os.makedirs(out, exist_ok=True)
    sp, manifest = Speech(dirs, {"held_base", "held_espeak"}), []
    for i in range(count):
        r = np.random.default_rng([seed, i])
        y, turns, voices, share = conversation(
            r,
            sp,
            2 + i % 4,
            (0.05, 0.12, 0.2, 0.25)[i // 4 % 4] + r.uniform(-0.02, 0.02),
            r.uniform(45, 75),
            "round" in sys.argv[5:],
        )
        name = f"ov{i + 1}"
        sf.write(f"{out}/{name}.flac", y, SR)
        with open(f"{out}/{name}.rttm", "w") as f:
            for s, e, v in turns:
                f.write(f"SPEAKER {name} 1 {s:.2f} {e - s:.2f} <NA> <NA> V{v} <NA> <NA>\n")
        manifest.append(
            dict(file=name + ".flac", voices=voices, overlap=round(share, 3), seconds=round(len(y) / SR, 1))
        )
        print(manifest[-1], flush=True)
    json.dump(manifest, open(f"{out}/manifest.json", "w"), indent=1)


if __name__ == "__main__":
    main()
