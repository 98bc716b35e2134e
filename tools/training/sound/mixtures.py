"""Mixtures that train the voice detector on sounds other than voices.

corpus.vad_mix puts sounds in the background of speech, always softer. Here they occur alone or
alternate with speech, as loud or louder: a detector that was never trained on music at full level
without a voice detects it as one.
"""

import subprocess

import numpy as np

from .corpus import MUSIC, Events, Speech, room_noise
from .dsp import SR, activity, channel, convolve, normal, room

TUNES = MUSIC | {"Piano, any", "Instrument, any", "Instruments", "Notes"}


def sound(r: np.random.Generator, ev: Events, n: int, rms: float = 0.08) -> np.ndarray:
    """n samples of one class or of a few in turn, at the level `rms`; neighboring clips of one
    recording stay together."""
    pick = lambda: tunes[r.integers(len(tunes))] if r.random() < 0.45 else other[r.integers(len(other))]
    tunes, other = [c for c in ev.by if c in TUNES], [c for c in ev.by if c not in TUNES and c != "Silence"]
    parts, gaps = [], r.random() < 0.4
    c = pick()
    while sum(map(len, parts)) < n:
        if r.random() < 0.35:
            c = pick()
        k, m = int(r.integers(len(ev.by[c]))), int(r.integers(1, 4))
        w = np.concatenate([ev.wav(i) for i in ev.by[c][k : k + m]])
        w = normal(w[int(r.uniform(0, 0.4) * len(w)) :] if r.random() < 0.5 else w, rms) * 10 ** (r.uniform(-5, 2) / 20)
        w[:160] *= np.linspace(0, 1, 160)
        w[-160:] *= np.linspace(1, 0, 160)
        parts.append(w)
        if gaps:
            parts.append(np.zeros(int(r.uniform(0.1, 2) * SR), np.float32))
    return np.concatenate(parts)[:n]


def microphone(r: np.random.Generator, y: np.ndarray, rms: float = 0.08) -> np.ndarray:
    """Room, noise floor, color, bandwidth and level, as in corpus.vad_mix."""
    if r.random() < 0.2:
        y = convolve(y, room(r, r.uniform(0.08, 0.35)))
    y = channel(r, y, rms)
    y = y * 10 ** (r.uniform(-26, 6) / 20)
    return (y * min(1, 0.98 / (np.abs(y).max() + 1e-9))).astype(np.float32)


def free_mix(r: np.random.Generator, ev: Events, sec: float) -> tuple[np.ndarray, np.ndarray]:
    """Without speech: only noise, near silence, or sounds, half of them with background noise."""
    n, k = int(sec * SR), r.random()
    if k < 0.12:
        y = normal(room_noise(r, n), 0.08)
    elif k < 0.15:
        y = np.zeros(n, np.float32)
    else:
        y = sound(r, ev, n)
        if r.random() < 0.4:
            y = y + normal(room_noise(r, n), 0.08 * 10 ** (-r.uniform(6, 35) / 20))
    return microphone(r, y.astype(np.float32)), np.zeros(n // 160, bool)


def turn_mix(r: np.random.Generator, sp: Speech, ev: Events, sec: float) -> tuple[np.ndarray, np.ndarray]:
    """Speech and sounds one after the other, the sounds between 12 dB softer and 4 dB louder."""
    n = int(sec * SR)
    y, act = np.zeros(n, np.float32), np.zeros(n // 160, bool)
    voices = [sp.names[int(k)] for k in r.integers(0, len(sp.names), r.integers(1, 3))]
    p, speech = r.uniform(0, 0.6), r.random() < 0.4
    while p < sec - 0.3:
        i = int(p * SR)
        if speech:
            for _ in range(int(r.integers(1, 3))):
                x = sp.wav(int(r.choice(sp.spk[voices[r.integers(len(voices))]])))
                if r.random() < 0.4:
                    a = int(r.uniform(0, 0.6) * len(x))
                    x = x[a : a + int(r.uniform(0.5, 4) * SR)]
                i = int(p * SR)
                m = min(len(x), n - i)
                if len(x) < 3200 or m < 3200:
                    break
                x = x * 10 ** (r.uniform(-6, 3) / 20)
                a = activity(x)[: m // 160]
                act[i // 160 : i // 160 + len(a)] |= a[: len(act) - i // 160]
                y[i : i + m] += x[:m]
                p += m / SR + r.exponential(0.3)
        else:
            m = min(int(r.uniform(0.8, 5) * SR), n - i)
            y[i : i + m] += sound(r, ev, m) * 10 ** (r.uniform(-12, 4) / 20)
            p += m / SR
        p += r.uniform(0, 0.6)
        speech = not speech
    return microphone(r, y), act


def through_opus(waves: list[np.ndarray], kbit: int) -> list[np.ndarray]:
    """The waves after coding and decoding with Opus, with the same lengths."""
    raw = (np.concatenate(waves).clip(-1, 1) * 32767).astype(np.int16).tobytes()
    pcm = ["-f", "s16le", "-ar", "16000", "-ac", "1"]
    ff = ["ffmpeg", "-v", "error", "-threads", "1"]
    ogg = subprocess.run(
        ff + pcm + ["-i", "-", "-c:a", "libopus", "-b:a", f"{kbit}k", "-compression_level", "4", "-f", "ogg", "-"],
        input=raw,
        capture_output=True,
        check=True,
    ).stdout
    out = subprocess.run(ff + ["-i", "-"] + pcm + ["-"], input=ogg, capture_output=True, check=True).stdout
    y = np.frombuffer(out, np.int16).astype(np.float32) / 32768
    y = np.pad(y, (0, max(0, len(raw) // 2 - len(y))))
    return np.split(y[: len(raw) // 2], np.cumsum([len(w) for w in waves])[:-1])
