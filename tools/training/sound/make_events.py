"""Clips of every synthesized class, or of sounds other than voices: events.i16 (16 kHz int16) and events.json
[{class, split, off, len}]."""

import json
import os
import zlib
from dataclasses import dataclass

import numpy as np

from .dsp import SR, convolve, normal, room, tilt
from .events import CLASSES
from .negatives import NEGATIVES

SEC = 3.2


@dataclass(frozen=True)
class Settings:
    """config/events.toml describes them."""

    out: str
    clips: int
    held: int
    negatives: bool


def finish(r: np.random.Generator, x: np.ndarray, silent: bool) -> np.ndarray:
    """Adds color, room and level, as a microphone would."""
    x = np.asarray(x, np.float32)
    if not silent:
        if r.random() < 0.5:
            x = tilt(x, r.uniform(-8, 8))
        if r.random() < 0.4:
            x = convolve(x, room(r))
        x = normal(x, 0.1)
        k = 0.98 / max(1e-6, np.abs(x).max())
        x = x * min(1, k)
        x = x + (r.standard_normal(len(x)) * 10 ** r.uniform(-5, -3.3)).astype(np.float32)
    return (np.clip(x, -1, 1) * 32767).astype(np.int16)


def clip(name: str, seed: list[int], n: int) -> tuple[np.ndarray, np.random.Generator]:
    r = np.random.default_rng(seed)
    return (CLASSES | NEGATIVES)[name][0](r, n), r


def run(s: Settings) -> None:
    """Writes the corpus."""
    os.makedirs(s.out, exist_ok=True)
    index, off, n = [], 0, int(SEC * SR)
    with open(f"{s.out}/events.i16", "wb") as f:
        for name, (g, _) in (NEGATIVES if s.negatives else CLASSES).items():
            for split, cnt, base in (("train", s.clips, 0), ("held", s.held, 10**6)):
                per = (6 if name in NEGATIVES else 15) if getattr(g, "midi", False) else 1
                for k in range(0, cnt, per):
                    x, r = clip(name, [zlib.crc32(name.encode()), base + k], n * per)
                    for j in range(min(per, cnt - k)):
                        y = finish(r, x[j * n : (j + 1) * n], name == "Silence")
                        f.write(y.tobytes())
                        index.append({"class": name, "split": split, "off": off, "len": len(y)})
                        off += len(y)
            print(name, off / SR / 60, flush=True)
    with open(f"{s.out}/events.json", "w") as f:
        json.dump(index, f)
