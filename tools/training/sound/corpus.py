"""Reading the two corpora."""

import json
from collections.abc import Sequence

import numpy as np

from .dsp import SR, activity, channel, convolve, normal, room

HELD = {"held_base", "held_warp", "held_espeak"}  # the splits that are never used in training


class Speech:
    """Utterances of the splits in the folders `dirs`."""

    def __init__(self, dirs: Sequence[str], splits: set[str]) -> None:
        self.u, self.spk, self.maps = [], {}, []
        for di, d in enumerate(dirs):
            self.maps.append(np.memmap(f"{d}/speech.i16", np.int16, "r"))
            for e in json.load(open(f"{d}/speech.json")):
                if e["split"] in splits:
                    e["map"] = di
                    self.spk.setdefault(e["spk"], []).append(len(self.u))
                    self.u.append(e)
        self.names = sorted(self.spk)
        self.bases: dict[str, list[str]] = {}  # the warped voices of each recorded voice or variant
        for name in self.names:
            self.bases.setdefault(self.u[self.spk[name][0]]["base"], []).append(name)

    def wav(self, i: int) -> np.ndarray:
        e = self.u[i]
        return self.maps[e["map"]][e["off"] : e["off"] + e["len"]].astype(np.float32) / 32768


class Events:
    """Clips of one split of the corpora in the folders `dirs`."""

    def __init__(self, dirs: Sequence[str], split: str) -> None:
        self.u, self.by, self.maps = [], {}, []
        for d in dirs:
            for e in json.load(open(f"{d}/events.json")):
                if e["split"] == split:
                    e["map"] = len(self.maps)
                    self.by.setdefault(e["class"], []).append(len(self.u))
                    self.u.append(e)
            self.maps.append(np.memmap(f"{d}/events.i16", np.int16, "r"))

    def wav(self, i: int) -> np.ndarray:
        e = self.u[i]
        return self.maps[e["map"]][e["off"] : e["off"] + e["len"]].astype(np.float32) / 32768


def room_noise(r: np.random.Generator, n: int) -> np.ndarray:
    """Stationary or slowly moving noise with a random smooth spectrum (hiss to rumble)."""
    k = np.maximum(np.arange(n // 2 + 1), 20.0 * n / 160000)
    X = np.fft.rfft(r.standard_normal(n)) / k ** r.uniform(0, 1.5)
    X *= 10 ** (np.interp(np.log(k), np.linspace(np.log(k[0]), np.log(k[-1]), 9), r.uniform(-9, 9, 9)) / 20)
    y = np.fft.irfft(X, n)
    if r.random() < 0.5:
        m = int(r.integers(4, 30))
        y = y * np.interp(np.linspace(0, m, n), np.arange(m + 1), 10 ** (r.uniform(-8, 8, m + 1) / 20))
    if r.random() < 0.3:  # bumps, clicks, rustle
        for _ in range(int(r.integers(2, 25))):
            i, d = int(r.integers(0, n - 4000)), int(r.integers(80, 4000))
            y[i : i + d] += (
                y.std()
                * 10 ** (r.uniform(0, 22) / 20)
                * r.standard_normal(d)
                * np.exp(-np.arange(d) / (d / r.uniform(1, 5)))
            )
    return y.astype(np.float32)


def vad_mix(
    r: np.random.Generator, sp: Speech, ev: Events, sec: float, hard: float = 1.0
) -> tuple[np.ndarray, np.ndarray, str]:
    """One mixture and its truth: (wave float32, active per 10 ms bool, notes)."""
    n = int(sec * SR)
    y = np.zeros(n, np.float32)
    act = np.zeros(n // 160, bool)
    p = r.uniform(0, 1.5)
    voices = [sp.names[int(k)] for k in r.integers(0, len(sp.names), r.integers(1, 4))]
    if r.random() < 0.12:
        p = sec
    while p < sec:
        x = sp.wav(int(r.choice(sp.spk[voices[r.integers(len(voices))]])))
        if r.random() < 0.5:
            a = int(r.uniform(0, 0.7) * len(x))
            x = x[a : a + int(r.uniform(0.4, 4) * SR)]
        if len(x) < 3200:
            continue
        x = x * 10 ** (r.uniform(-6, 3) / 20)
        i = int(p * SR)
        m = min(len(x), n - i)
        a = activity(x)[: max(0, (n - i) // 160)]
        j = i // 160
        k = min(len(a), len(act) - j)
        act[j : j + k] |= a[:k]
        y[i : i + m] += x[:m]
        p += len(x) / SR + (r.exponential(0.8) if r.random() < 0.7 else r.uniform(0.5, 4))
    if r.random() < 0.25:
        y = convolve(y, room(r, r.uniform(0.08, 0.35)))
    rms = 0.08
    kind = r.random()
    bg = None
    note = "quiet"
    if kind < 0.25:
        note, bg = "noise", normal(room_noise(r, n), rms)
    elif kind < 0.82:
        names = list(ev.by)
        music = kind > 0.5
        names = [c for c in names if c != "Silence" and ((c in MUSIC) == music)]
        parts = []
        c = names[r.integers(len(names))]
        while sum(map(len, parts)) < n:
            if r.random() < 0.3:
                c = names[r.integers(len(names))]
            k0 = ev.by[c][r.integers(len(ev.by[c]))]
            w = normal(ev.wav(k0), rms)
            w[:160] *= np.linspace(0, 1, 160)
            w[-160:] *= np.linspace(1, 0, 160)
            parts.append(w)
            if not music and r.random() < 0.4:
                parts.append(np.zeros(int(r.uniform(0.2, 3) * SR), np.float32))
        bg = np.concatenate(parts)[:n]
        note = "music" if music else "events"
    snr = r.uniform(2, 25) * hard + (1 - hard) * 10
    if bg is not None:
        y = y + bg * 10 ** (-snr / 20)
        note += f", speech to background {snr:.0f} dB"
    y = channel(r, y, rms)
    g = 10 ** (r.uniform(-26, 3) / 20)
    y = y * g
    m = np.abs(y).max()
    if m > 0.98:
        y = y * (0.98 / m)
    return y.astype(np.float32), act, note


MUSIC = {
    "Piano",
    "Organ",
    "Guitar",
    "Electric guitar",
    "Violin, fiddle",
    "Flute",
    "Trumpet",
    "Harp",
    "Marimba, xylophone",
    "Drum",
    "Music",
}
