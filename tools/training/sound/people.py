"""Features of real people's recordings, and a teacher's vectors of them.

Reads FOLDER/PERSON/*.ogg (.flac, .wav, .mp3) of the folders `recordings`; a third of the people is
held out by name. Each person is also kept as several others: pitch and formants moved, as
make_speech does with a recorded voice. Of each recording there is a clean copy and degraded ones.
Writes feats.f16 (fbank 80, not mean-normalized), teacher.f32 and index.json.
"""

import hashlib
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import room_noise
from .dsp import SR, activity, band, channel, convolve, fbank, normal, resample, room, runs, tilt, warp_envelope
from .make_speech import read
from .mixtures import through_opus

Warp = tuple[float, float, float]  # pitch and formants, formants again, tilt in dB


@dataclass(frozen=True)
class Settings:
    """config/people.toml describes them."""

    recordings: tuple[str, ...]
    teacher: str
    out: str
    warps: int
    seconds: float
    warped_seconds: float
    copies: int


def share(name: str) -> float:
    """A number from 0 to 1 that depends on the name alone."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32


def held(person: str) -> bool:
    """Whether a person is kept out of training."""
    return share("held " + person) < 1 / 3


def tight(x: np.ndarray) -> np.ndarray:
    """The sound without the silence around it; empty if it is all silence."""
    peak = np.abs(x).max() if len(x) else 0
    on = runs(activity(x / peak * 0.5, drop=35, close=0.2)) if peak > 1e-3 else []
    return x[max(0, int(on[0][0] * SR) - 480) : int(on[-1][1] * SR) + 480] if on else x[:0]


def pieces(clips: list[np.ndarray], seconds: float = 4.0, longest: float = 9.0) -> list[np.ndarray]:
    """Short clips of one person end to end, long ones cut, in pieces of about so many seconds."""
    out, now = [], []
    for c in (c / np.abs(c).max() * 0.6 for c in clips if len(c) >= 800):
        while len(c) > longest * SR:
            out.append(c[: 6 * SR])
            c = c[6 * SR :]
        now.append(c)
        if sum(map(len, now)) > seconds * SR:
            out.append(np.concatenate(now))
            now = []
    if now and (not out or sum(map(len, now)) > 1.5 * SR):
        out.append(np.concatenate(now))
    return out


def people(folders: tuple[str, ...]) -> dict[str, list[np.ndarray]]:
    """The recordings of everyone who is not held out, in pieces."""
    out = {}
    for folder in sorted(p for f in folders for p in Path(f).iterdir() if p.is_dir()):
        if not held(folder.name):
            out[folder.name] = pieces([tight(read(str(p))) for p in sorted(folder.iterdir())])
    return {name: p for name, p in out.items() if p}


def warps(person: str, count: int) -> list[Warp]:
    """The person's own voice and `count` others that differ from it and from each other."""
    r, out = random.Random("warp " + person), [(1.0, 1.0, 0.0)]
    while len(out) <= count:
        w = (r.uniform(0.78, 1.28), r.uniform(0.85, 1.18), r.uniform(-4, 4))
        away = lambda v: max(abs(np.log(v[0] / w[0])), abs(np.log(v[0] * v[1] / w[0] / w[1])))
        if 0.75 < w[0] * w[1] < 1.35 and min(map(away, out)) > 0.09:
            out.append(w)
    return out


def mu_law(x: np.ndarray) -> np.ndarray:
    """A telephone line: 300 to 3400 Hz, eight bits."""
    x = band(x, 300, 3400)
    peak = np.abs(x).max() + 1e-9
    y = np.round(np.sign(x) * np.log1p(255 * np.abs(x) / peak) / np.log(256) * 127) / 127
    return (np.sign(y) * (256 ** np.abs(y) - 1) / 255 * peak).astype(np.float32)


def degrade(r: np.random.Generator, y: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """A room, noise or four other voices, a microphone, a telephone line or Opus: each at times."""
    n = len(y)
    if r.random() < 0.5:
        y = convolve(y, room(r, r.uniform(0.1, 0.6)))
    q, noise = r.random(), None
    if q < 0.6 and n > 9000:
        noise = room_noise(r, n)
    elif 0.6 <= q < 0.8:
        noise = sum(np.resize(others[r.integers(len(others))], n) for _ in range(4))
    if noise is not None:
        y = y + normal(noise, 0.08) * 10 ** (-r.uniform(5, 30) / 20)
    y = channel(r, y, 0.08)
    q = r.random()
    if q < 0.15:
        return mu_law(y)
    return through_opus([y], 12)[0] if q < 0.25 else y


class Teacher:
    """A published voice network on samples: float32[batch, samples] at 16 kHz to vectors."""

    def __init__(self, path: str):
        import onnxruntime

        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.input = self.session.get_inputs()[0].name

    def vector(self, x: np.ndarray, window: int = 25600) -> np.ndarray:
        """The mean vector of the windows of 1.6 s, of unit length."""
        x = np.resize(x, window) if len(x) < window else x
        parts = [x[a : a + window] for a in range(0, len(x) - window + 1, window)]
        e = self.session.run(None, {self.input: np.stack(parts).astype(np.float32)})[0].mean(0)
        return (e / np.linalg.norm(e)).astype(np.float32)


class Output:
    """The three files of the corpus."""

    def __init__(self, folder: str):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.frames, self.vectors = folder, 0, 0
        self.index: list[dict[str, Any]] = []
        self.feats, self.teacher = (open(f"{folder}/{n}", "wb") for n in ("feats.f16", "teacher.f32"))

    def put(self, voice: str, vector: np.ndarray, copies: list[np.ndarray]) -> None:
        """Adds a piece of a voice in several copies."""
        self.teacher.write(vector.astype("<f4").tobytes())
        for x in copies:
            f = fbank(x, False).astype(np.float16)
            self.feats.write(f.tobytes())
            self.index.append(dict(voice=voice, off=self.frames, len=len(f), vector=self.vectors))
            self.frames += len(f)
        self.vectors += 1

    def close(self) -> None:
        """Writes the index."""
        self.feats.close()
        self.teacher.close()
        with open(f"{self.folder}/index.json", "w") as f:
            json.dump(self.index, f)


def run(s: Settings) -> None:
    """Writes the corpus."""
    everyone, teacher, out = people(s.recordings), Teacher(s.teacher), Output(s.out)
    others = [normal(p[0], 0.08) for p in list(everyone.values())[::3]]
    for person, sounds in everyone.items():
        order = random.Random(person).sample(sounds, len(sounds))
        for k, (p, a, db) in enumerate(warps(person, s.warps)):
            left = (s.warped_seconds if k else s.seconds) * SR
            for i, x in enumerate(order):
                if left < 0:
                    break
                left -= len(x)
                x = normal(x, 0.08)
                if k:
                    x = normal(tilt(warp_envelope(resample(x, 1 / p), a), db), 0.08)
                r = np.random.default_rng([int(share(person) * 2**31), k, i])
                rough = [degrade(r, x, others) for _ in range(1 if k else s.copies)]
                out.put(f"{person}+{k}", teacher.vector(x), [x, *rough])
        print(person, out.frames // 6000, "min", flush=True)
    out.close()
