"""Sounds only for the voice detector: sounds that it may mistake for a voice.

Like the generators of events.py, each draws its parameters from `r`; NEGATIVES has the
form of events.CLASSES, but the names are not AudioSet's and no tagger is trained on them.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.signal import lfilter

from .dsp import SR, convolve, normal, room
from .events import adsr, bp, lp, notes_for, pattern, pink, place, play, slow, sweep, t_, tone, white

# General MIDI without instruments that imitate voices (choir, "ooh", synth voice)
# and without sounds (seashore to gunshot)
INSTRUMENTS = [p for p in range(120) if p not in (52, 53, 54, 85, 91)]


def music(programs: Sequence[int], parts: tuple[int, int]) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Melodies and chords at 0.5 to 2.5 times the usual tempo, in any register, with pauses."""

    def f(r, n):
        sec, y = n / SR, 0.0
        for _ in range(int(r.integers(parts[0], parts[1] + 1))):
            k = r.uniform(0.5, 2.5)
            notes = notes_for(r, str(r.choice(["chord", "mel", "low", "bass"], p=[0.45, 0.35, 0.12, 0.08])), sec / k)
            up = int(r.choice([-12, 0, 0, 12]))
            gap = r.random() < 0.3
            notes = [
                (s * k, d * k * r.uniform(0.3, 1) if gap else d * k, int(np.clip(p + up, 24, 100)), v)
                for s, d, p, v in notes
            ]
            y = y + normal(play(notes, int(r.choice(programs)), False, sec), 0.06) * r.uniform(0.4, 1)
        if parts[1] > 1 and r.random() < 0.4:
            y = y + normal(play(notes_for(r, "drums", sec), 0, True, sec), 0.04)
        return y

    f.midi = True
    return f


def notes(r: np.random.Generator, n: int) -> np.ndarray:
    """Plain synthetic notes: a few harmonics, plucked or held, one to three at a time."""
    y, p = np.zeros(n), r.uniform(0, 0.4)
    root, d, tau = r.uniform(110, 660), r.uniform(0.12, 0.8), r.uniform(0.08, 1.2)
    harm = np.concatenate([[1.0], r.uniform(0, 1, 6) * r.uniform(0.2, 0.9) ** np.arange(1, 7)])
    held = r.random() < 0.4
    while p < n / SR:
        a, m = int(p * SR), int(d * r.choice([0.5, 1, 1, 2]) * SR)
        m = min(m, n - a)
        if m < 80:
            break
        for _ in range(int(r.integers(1, 4)) if r.random() < 0.4 else 1):
            x = tone(root * 2 ** (r.integers(-7, 15) / 12), m, harm, r.uniform(0, 6))
            y[a : a + m] += x * (adsr(m, 0.01, 0.03) if held else adsr(m, 0.004, 0.01) * np.exp(-t_(m) / tau))
        p += m / SR + (r.uniform(0.1, 1) if r.random() < 0.15 else 0)
    return y


def vocal(r: np.random.Generator, f: np.ndarray, formants: Sequence[float], breath: float) -> np.ndarray:
    """A throat with formants: pulses at the frequencies f (Hz, one per sample) through resonances."""
    p = sweep(f)
    x = sum(np.sin(k * p) / k ** r.uniform(0.3, 0.9) * (k * f < 7600) for k in range(1, 14)) + breath * white(r, len(f))
    y = np.zeros(len(f))
    for q in formants:
        w = np.exp(-np.pi * q * r.uniform(0.08, 0.25) / SR)
        y += lfilter([1 - w], [1, -2 * w * np.cos(2 * np.pi * min(q, 7500) / SR), w * w], x)
    return y


def calls(
    shape: Callable[[np.random.Generator], Callable], dur: tuple[float, float], gap: tuple[float, float]
) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Single calls, the same animal each time, with pauses between them."""

    def f(r, n):
        d, forms = r.uniform(*dur), sorted(r.uniform(500, 4500, 3))
        base, k, breath = shape(r), r.uniform(0.9, 1.1), r.uniform(0.05, 0.9)

        def one():
            m = int(d * r.uniform(0.85, 1.15) * SR)
            u = np.linspace(0, 1, m)
            fc = base(u) * k * r.uniform(0.96, 1.04)
            return vocal(r, fc, forms, breath) * np.sin(np.pi * u ** r.uniform(0.35, 1)) ** 0.6

        s, p = [], r.uniform(0, 0.6)
        while p < n / SR:
            s.append(p)
            p += d + r.uniform(*gap)
        y = place(n, s, one)
        return convolve(y, room(r, r.uniform(0.1, 0.4))) if r.random() < 0.5 else y

    return f


def bark(r: np.random.Generator) -> Callable:
    f, fall = r.uniform(250, 900), r.uniform(0.4, 0.9)
    return lambda u: f * (1 - fall * u * 0.7)


def miaow(r: np.random.Generator) -> Callable:
    f, h = r.uniform(400, 900), r.uniform(0.15, 0.6)
    return lambda u: f * (1 + h * np.sin(np.pi * u ** r.uniform(0.6, 1.4)))


def caw(r: np.random.Generator) -> Callable:
    f = r.uniform(350, 1100)
    return lambda u: f * (1 + 0.12 * np.sign(np.sin(2 * np.pi * 35 * u)) - 0.2 * u)


def crow(r: np.random.Generator) -> Callable:  # a cock: four notes, the last one long
    f = r.uniform(500, 900)
    return lambda u: f * np.interp(u, [0, 0.15, 0.18, 0.3, 0.33, 0.5, 0.8, 1], [0.9, 1, 1.2, 1.15, 1.3, 1.7, 1.6, 1])


def frog(r: np.random.Generator) -> Callable:
    f = r.uniform(90, 260)
    return lambda u: f * (1 + 0.1 * np.sin(2 * np.pi * 12 * u))


def bursts(r: np.random.Generator, n: int) -> np.ndarray:
    """Colored noise, switched or swelling."""
    x = pink(r, n, r.uniform(0, 1.1))
    x /= x.std() + 1e-9
    if r.random() < 0.4:
        x = bp(x, r.uniform(100, 1500), r.uniform(1800, 7500))
    g = (
        pattern(r, n, r.uniform(0.05, 1), r.uniform(0.05, 1), 0.3)
        if r.random() < 0.6
        else slow(r, n, r.uniform(0.5, 8)) ** 2
    )
    return x * g


def brown(r: np.random.Generator, n: int) -> np.ndarray:
    """Rumble: noise that falls by 5 to 9 dB per octave, like fans, traffic and wind on a microphone."""
    x = pink(r, n, r.uniform(0.8, 1.5))
    x /= x.std() + 1e-9
    return x * slow(r, n, r.uniform(0.3, 2), 0.5, 1) if r.random() < 0.5 else x


def drip(r: np.random.Generator, n: int) -> np.ndarray:
    """Drops: short falling or rising chirps at random times."""

    def one():
        m = int(r.uniform(0.02, 0.12) * SR)
        f = r.uniform(400, 2500)
        return (
            np.sin(sweep(f * np.linspace(1, r.uniform(0.7, 1.8), m)))
            * np.exp(-t_(m) / r.uniform(0.008, 0.04))
            * r.uniform(0.2, 1)
        )

    return convolve(place(n, np.sort(r.uniform(0, n / SR, int(r.uniform(3, 60)))), one), room(r)) + 0.002 * white(r, n)


def shower(r: np.random.Generator, n: int) -> np.ndarray:
    """Rain on a resonant surface: dense drops over hiss."""
    x = lp(white(r, n), r.uniform(2500, 7800)) * r.uniform(0.1, 0.6)
    k = (r.random(n) < r.uniform(30, 2500) / SR) * r.exponential(1, n) * 4
    f = r.uniform(300, 4000)
    return x * slow(r, n, 0.8, 0.6, 1) + lfilter([1], [1, -1.6 * np.cos(2 * np.pi * f / SR), 0.64], k)


def sounder(r: np.random.Generator, n: int) -> np.ndarray:
    """Two or three alternating tones, or a gliding one: signals of devices."""
    f = np.exp(r.uniform(np.log(250), np.log(3500), int(r.integers(1, 4))))
    k = r.uniform(0.06, 1.2)
    i = (t_(n) / k).astype(int) % len(f)
    c = lfilter([1 - 0.995], [1, -0.995], f[i]) if r.random() < 0.4 else f[i]
    c = c * (1 + r.uniform(0, 0.03) * np.sin(2 * np.pi * r.uniform(3, 30) * t_(n)))
    y = sum(
        a * np.sin(h * sweep(c)) * (h * c < 7800) for h, a in ((1, 1), (2, r.uniform(0, 0.6)), (3, r.uniform(0, 0.5)))
    )
    return y * (pattern(r, n, r.uniform(0.1, 2), r.uniform(0.05, 1.5)) if r.random() < 0.6 else 1)


NEGATIVES = {
    "Piano, any": (music([0, 1, 2, 3, 4, 5], (1, 1)), []),
    "Instrument, any": (music(INSTRUMENTS, (1, 1)), []),
    "Instruments": (music(INSTRUMENTS, (2, 3)), []),
    "Notes": (notes, []),
    "Signal": (sounder, []),
    "Bursts": (bursts, []),
    "Rumble": (brown, []),
    "Drops": (drip, []),
    "Shower": (shower, []),
    "Bark": (calls(bark, (0.08, 0.3), (0.15, 1.2)), []),
    "Miaow": (calls(miaow, (0.35, 1.0), (0.4, 2)), []),
    "Caw": (calls(caw, (0.2, 0.6), (0.3, 1.5)), []),
    "Cock": (calls(crow, (1.2, 2.2), (0.6, 2)), []),
    "Frog": (calls(frog, (0.1, 0.5), (0.15, 1)), []),
}
