"""Clip pools, augmentation, the two feature kinds, and batch makers."""

import glob
import json
import random
from dataclasses import dataclass

import numpy as np
import torch
from scipy import fft
from scipy.signal import butter, fftconvolve, lfilter, sosfilt

SR = 16000
# espeak-ng's phonemes, letters of its IPA and the digits of Chinese tones, most frequent first; number 0 is the blank
PHONES = "taniesomɪəlkɛ5uɾdʊpwɑfj2zɔvŋæbhʁyɜðɕrɹʒʃɐ1ɡçχβxθʌøɲœɚɣʎʏᵻʐʝɒ"
# bfloat16 where the processor multiplies it natively, float32 elsewhere (there bfloat16 is 13 times slower)
DTYPE = torch.bfloat16 if "avx512_bf16" in open("/proc/cpuinfo").read() else torch.float32


@dataclass(frozen=True)
class Data:
    """The training data of a recognizer; config/ctc.toml describes the settings."""

    clips: tuple[str, ...]
    dev: tuple[str, ...]
    boost: str
    boost_times: int
    english: float
    wide: bool
    seconds: float
    max_sentences: int
    nonspeech: float
    augment: float
    far: float
    event: float
    workers: int


@dataclass(frozen=True)
class Course(Data):
    """Data and the settings of a recognizer's training on them."""

    out: str
    origin: str
    steps: int
    seed: int
    rate: float
    rate_end: float
    muon: float
    threads: int
    rank: int
    ranks: int


class Pool:
    """Clips of the files that match the patterns; voices that begin with `boost` count several times."""

    def __init__(self, patterns, boost="-", times=1):
        self.items, self.raw = [], []
        for p in sorted(f for pat in patterns for f in glob.glob(pat)):
            base = p[:-6]
            try:
                raw = np.memmap(base + ".raw", np.int16, "r")
            except ValueError:
                continue
            k = len(self.raw)
            self.raw.append(raw)
            for line in open(p, encoding="utf-8"):
                try:
                    d = json.loads(line)
                except ValueError:
                    break
                if d["o"] + d["n"] <= len(raw):
                    d["k"] = k
                    self.items.append(d)
        self.bylang = {}
        for i, d in enumerate(self.items):
            self.bylang.setdefault(d["lang"], []).extend([i] * (times if d["voice"].startswith(boost) else 1))

    def wav(self, d: dict) -> np.ndarray:
        return self.raw[d["k"]][d["o"] : d["o"] + d["n"]].astype(np.float32) / 32768


def tilt(x: np.ndarray, a: float) -> np.ndarray:
    y = x.copy()
    y[1:] += a * x[:-1]
    return y


def stretch(x: np.ndarray, f: float) -> np.ndarray:
    """Stretches by f at the same pitch (WSOLA): 30 ms frames every 15 ms, each at the best
    continuation of the last."""
    n, h, s = 480, 240, 160
    if len(x) < 4 * n:
        return x
    w = np.hanning(n + 1)[:n].astype(np.float32)
    x = np.concatenate([x, np.zeros(n + h + s, np.float32)])
    m = int((len(x) - n - h - s) * f) // h
    y, a = np.zeros(m * h + n, np.float32), 0
    for k in range(m):
        b = int(k * h / f)
        if k:
            lo = max(0, b - s)
            a = lo + int(np.correlate(x[lo : b + s + h], x[a + h : a + 2 * h], "valid").argmax())
        a = min(a, len(x) - 2 * n)
        y[k * h : k * h + n] += x[a : a + n] * w
    return y[: m * h]


def formants(x: np.ndarray, f: float) -> np.ndarray:
    """Moves the spectral envelope up by the factor f at the same pitch (cepstrum of 32 ms frames, lifted
    below 2.5 ms)."""
    n, h = 512, 128
    p = np.concatenate([np.zeros(n, np.float32), x, np.zeros(n, np.float32)])
    w = np.sqrt(np.hanning(n + 1)[:n]).astype(np.float32)
    fr = np.lib.stride_tricks.sliding_window_view(p, n)[::h] * w
    S = fft.rfft(fr.astype(np.float32))
    c = fft.irfft(np.log(np.abs(S) + 1e-5))
    c[:, 40:-39] = 0
    e = fft.rfft(c).real
    at = np.minimum(np.arange(n // 2 + 1) / f, n // 2 - 1e-3)
    i = at.astype(int)
    moved = e[:, i] * (1 - (at - i)) + e[:, i + 1] * (at - i)
    fr = fft.irfft((S * np.exp(np.clip(moved - e, -5, 5))).astype(np.complex64)).astype(np.float32) * w
    y = np.zeros(len(p) + n, np.float32)
    for k in range(len(fr)):
        y[k * h : k * h + n] += fr[k]
    return y[n : n + len(x)] / 2


class Augment:
    """Augmentation of voices: overall strength, share of strongly changed voices, share of events."""

    def __init__(self, seed=0, pool=None, strength=1.0, far=0.0, event=0.0):
        self.strength, self.far, self.event_share = strength, far, event
        r = self.r = np.random.RandomState(seed)
        self.rirs = []
        for _ in range(60):
            n = int(SR * r.uniform(0.05, 0.35))
            h = r.randn(n) * np.exp(-6.9 * np.arange(n) / n) * (np.arange(n) > r.randint(20, 200))
            h *= r.uniform(0.15, 0.9) / np.sqrt((h**2).sum() + 1e-9)
            h[0] = 1
            self.rirs.append(h.astype(np.float32))
        n = SR * 40
        w = r.randn(n).astype(np.float32)
        self.noises = [
            w,
            lfilter([1], [1, -0.97], r.randn(n)).astype(np.float32),
            lfilter([1, 0], [1, -0.8], r.randn(n)).astype(np.float32),
        ]
        t = np.arange(n) / SR
        hum = sum(np.sin(2 * np.pi * 50 * k * t + r.rand() * 6) / k for k in (1, 2, 3, 5)).astype(np.float32) + 0.05 * w
        self.noises += [hum, self.tune(n), self.tune(n), self.tune(n)]
        if pool is not None and pool.items:  # babble: five simultaneous voices
            b = np.zeros(n, np.float32)
            for _ in range(5):
                p = 0
                while p < n:
                    x = pool.wav(pool.items[r.randint(len(pool.items))])[: n - p]
                    b[p : p + len(x)] += x
                    p += len(x) + r.randint(0, 3000)
            self.noises.append(b)
        self.noises = [x / (x.std() + 1e-9) for x in self.noises]
        self.speechlike = len(self.noises) > 7

    def tune(self, n: int) -> np.ndarray:
        """Music-like: random notes with harmonics and decays."""
        r, y, p = self.r, np.zeros(n, np.float32), 0
        scale = [0, 2, 4, 5, 7, 9, 11, 12]
        root = r.choice([110, 147, 196, 262])
        while p < n - 100:
            d = int(SR * r.choice([0.15, 0.25, 0.4, 0.6]))
            L = min(n - p, d * 2)
            t = np.arange(L) / SR
            for _ in range(r.randint(1, 4)):
                f = root * 2 ** (r.choice(scale) / 12) * r.choice([1, 1, 2])
                y[p : p + L] += (
                    sum(np.sin(2 * np.pi * f * k * t) / k ** r.uniform(1, 2) for k in range(1, 6))
                    * np.exp(-t * r.uniform(1, 6))
                ).astype(np.float32)
            p += d
        return y

    def bells(self, n: int) -> np.ndarray:
        """A telephone or a door bell: struck partials that decay, in bursts (a telephone, a warble) or one by one (a
        door)."""
        r = self.r
        t, y = np.arange(n) / SR, np.zeros(n, np.float32)
        if r.rand() < 0.25:  # two simultaneous or alternating tones, as in electronic telephones
            f, g, rate = r.uniform(350, 1200), r.uniform(400, 2200), r.uniform(8, 30)
            a = (np.sin(2 * np.pi * rate * t) > 0) if r.rand() < 0.6 else 0.5
            y = (a * np.sin(2 * np.pi * f * t) + (1 - a) * np.sin(2 * np.pi * g * t)).astype(np.float32)
        else:
            door = r.rand() < 0.35
            every, decay = (r.uniform(0.3, 0.9), r.uniform(2, 6)) if door else (r.uniform(0.03, 0.08), r.uniform(8, 22))
            tones = (
                r.uniform(400, 1100) * np.array([1, r.choice([0.75, 0.8, 0.84])])
                if door
                else r.uniform(700, 2300) * np.array([1, r.uniform(1, 1.4)])
            )
            parts = [(1, 1)] + [(r.uniform(1.4, 4.5), r.uniform(0.1, 0.7)) for _ in range(3)]
            L = min(n, int(SR * 6 / decay))
            u = np.arange(L) / SR
            hits = [
                (sum(a * np.sin(2 * np.pi * f * m * u) for m, a in parts if f * m < 7900) * np.exp(-u * decay)).astype(
                    np.float32
                )
                for f in tones
            ]
            for k in range(int(n / SR / every) + 1):
                s = int(k * every * SR)
                m = min(L, n - s)
                if m > 0:
                    y[s : s + m] += hits[k % 2][:m]
            if door:
                return y
        on, off = r.uniform(0.4, 2), r.uniform(0.2, 1.5)
        return y * np.convolve((t % (on + off) < on).astype(np.float32), np.ones(400, np.float32) / 400, "same")

    def event(self, n: int) -> np.ndarray:
        """A ring or music in a pause."""
        x = self.bells(n) if self.r.rand() < 0.7 else self.noises[4 + self.r.randint(3)][:n]
        k = min(800, n // 4)
        x = x.copy()
        x[:k] *= np.linspace(0, 1, k)
        x[-k:] *= np.linspace(1, 0, k)
        return (x / (x.std() + 1e-9)).astype(np.float32)

    def noise(self, n: int, babble: bool = True) -> np.ndarray:
        r = self.r
        if self.event_share and r.rand() < 0.15:
            x = self.bells(n)
            return x / (x.std() + 1e-9)
        k = r.randint(len(self.noises) if babble else 7)
        x = self.noises[k]
        o = r.randint(0, len(x) - n) if len(x) > n else 0
        y = x[o : o + n]
        return y if len(y) == n else np.resize(y, n)

    def voice(self, x: np.ndarray, warp: float = 0.85) -> np.ndarray:
        """Per-clip voice changes: speed, pitch and formants jointly or separately, tilt, band limits."""
        r = self.r
        if r.rand() < self.far:
            f = r.uniform(0.8, 1.25)
            if r.rand() < 0.6:  # formants first: the resampling below moves them along with the pitch
                x = formants(x, r.uniform(0.85, 1.18) * (1 / f) ** r.choice([0, 0.5, 1]))
            n = int(len(x) / f)
            x = stretch(np.interp(np.arange(n) * f, np.arange(len(x)), x).astype(np.float32), f * r.uniform(0.82, 1.2))
        elif r.rand() < 0.7:
            f = 1 + (r.uniform(0.86, 1.17) - 1) * min(1, self.strength * 1.5)
            n = int(len(x) / f)
            x = np.interp(np.arange(n) * f, np.arange(len(x)), x).astype(np.float32)
        if r.rand() < 0.5 * self.strength:
            x = tilt(x, r.uniform(-0.7, 0.7))
        if r.rand() < 0.08 * self.strength:
            x = sosfilt(butter(2, [r.uniform(200, 400), r.uniform(3000, 3900)], "band", fs=SR, output="sos"), x).astype(
                np.float32
            )
        return x

    def room(self, x: np.ndarray, clean: float = 0.25) -> np.ndarray:
        """Whole-recording changes: reverb, noise, level."""
        r = self.r
        if r.rand() < 0.35 * self.strength:
            x = fftconvolve(x, self.rirs[r.randint(len(self.rirs))])[: len(x)].astype(np.float32)
        p = np.sqrt((x**2).mean() + 1e-9)
        if r.rand() < (1 - clean) * self.strength:
            x = x + self.noise(len(x)) * p * 10 ** (-r.uniform(7, 35) / 20)
        else:
            x = x + r.randn(len(x)).astype(np.float32) * 10 ** r.uniform(-5.5, -3)
        return x * (10 ** r.uniform(-1.6, -0.05) / (np.abs(x).max() + 1e-6))

    def nonspeech(self, n: int) -> np.ndarray:
        """Silence, noise, hum, music, tones or bursts for the 'no text' examples."""
        r = self.r
        k = r.randint(7)
        if k == 0:
            x = np.zeros(n, np.float32)
        elif k == 6:  # a sweep
            f = np.geomspace(r.uniform(30, 300), r.uniform(1500, 7900), n)[:: r.choice([-1, 1])]
            x = np.sin(2 * np.pi * np.cumsum(f) / SR).astype(np.float32)
        elif k == 1:
            t = np.arange(n) / SR
            f = r.uniform(100, 3000)
            on = (np.sin(2 * np.pi * t * r.uniform(0.2, 3) + r.rand() * 6) > r.uniform(-1, 0.8)).astype(np.float32)
            x = (
                np.sin(2 * np.pi * f * t + r.uniform(0, 5) * np.sin(2 * np.pi * r.uniform(1, 25) * t)).astype(
                    np.float32
                )
                * on
            )
        elif k == 2:
            x = self.noise(n, False) * np.repeat(r.rand(n // 1600 + 1) ** 3, 1600)[:n].astype(np.float32)
        elif k == 3:
            x = self.tune(n)
        else:
            x = self.noise(n, False) + 0.5 * self.noise(n, False)
        if r.rand() < (0.35 if k == 0 else 0.7):
            x = x + r.randn(n).astype(np.float32) * 10 ** r.uniform(-4.5, -1.5)
        m = np.abs(x).max()
        return (x * (10 ** r.uniform(-2.5, -0.05) / m) if m > 0 else x).astype(np.float32)


# ---------------------------------------------------------------- features
def slaney_mel(n: int = 80, nfft: int = 400) -> np.ndarray:
    f = np.linspace(0, SR / 2, nfft // 2 + 1)

    def h2m(h):
        h = np.asarray(h, float)
        return np.where(h < 1000, h * 3 / 200, 15 + np.log(np.maximum(h, 1e-9) / 1000) / (np.log(6.4) / 27))

    def m2h(m):
        return np.where(m < 15, m * 200 / 3, 1000 * np.exp((m - 15) * np.log(6.4) / 27))

    e = m2h(np.linspace(0, h2m(SR / 2), n + 2))
    w = np.zeros((n, len(f)))
    for i in range(n):
        w[i] = (
            np.maximum(0, np.minimum((f - e[i]) / (e[i + 1] - e[i]), (e[i + 2] - f) / (e[i + 2] - e[i + 1])))
            * 2
            / (e[i + 2] - e[i])
        )
    return w.astype(np.float32)


def kaldi_mel(n: int = 80, nfft: int = 512, lo: float = 20.0, hi: float = 7600.0) -> np.ndarray:
    m = lambda f: 1127 * np.log(1 + f / 700)
    f = m(np.arange(nfft // 2 + 1) * SR / nfft)
    e = np.linspace(m(lo), m(hi), n + 2)
    w = np.zeros((n, nfft // 2 + 1))
    for i in range(n):
        w[i] = np.maximum(0, np.minimum((f - e[i]) / (e[i + 1] - e[i]), (e[i + 2] - f) / (e[i + 2] - e[i + 1])))
    w[:, -1] = 0
    return w.astype(np.float32)


MELW, MELK = torch.tensor(slaney_mel()), torch.tensor(kaldi_mel())
HANN = torch.hann_window(400)
POVEY = torch.hann_window(400, periodic=False) ** 0.85


def logmel(x: torch.Tensor, top: torch.Tensor | None = None) -> torch.Tensor:
    """x [B,N] float32 -> [B,80,N/160], as whisper does (clamp 8 decades under the loudest value, then (v+4)/4)."""
    n = x.shape[1] // 160
    y = torch.nn.functional.pad(x[:, None], (200, 200), mode="reflect")[:, 0]
    fr = y.unfold(1, 400, 160)[:, :n]
    p = torch.fft.rfft(fr * HANN).abs().pow(2)
    m = torch.clamp(p @ MELW.T, min=1e-10).log10().transpose(1, 2)
    mx = m.amax((1, 2), keepdim=True)
    if top is not None:
        mx = mx + top[:, None, None]
    return (torch.maximum(m, mx - 8) + 4) / 4


def fbank(x: torch.Tensor) -> torch.Tensor:
    """x [B,N] in [-1,1] -> [B,(N+80)//160,80], Kaldi's fbank: snip_edges=false, povey, preemphasis 0.97, 20-7600 Hz, no
    dither."""
    n = (x.shape[1] + 80) // 160
    left = x[:, :120].flip(1)
    need = (n - 1) * 160 + 400 - 120 - x.shape[1]
    right = x[:, -max(need, 1) :].flip(1)[:, : max(need, 0)]
    fr = torch.cat([left, x, right], 1).unfold(1, 400, 160)[:, :n]
    fr = fr - fr.mean(2, keepdim=True)
    fr = torch.cat([fr[..., :1] * 0.03, fr[..., 1:] - 0.97 * fr[..., :-1]], 2) * POVEY
    p = torch.fft.rfft(fr, 512).abs().pow(2)
    return torch.clamp(p @ MELK.T, min=1.1920929e-07).log()


def specaug(
    f: torch.Tensor, rng: np.random.RandomState, taxis: int, faxis: int, fill: float, strength: float
) -> torch.Tensor:
    """Blanks a band and a stretch of time in some of the features, depending on the augmentation's strength."""
    for b in range(f.shape[0]):
        if rng.rand() < 0.6 * strength:
            w = rng.randint(1, 12)
            o = rng.randint(0, 80 - w)
            f[b].narrow(faxis - 1, o, w).fill_(fill)
        if rng.rand() < 0.4 * strength:
            T = f.shape[taxis]
            w = min(rng.randint(1, 18), T - 1)
            o = rng.randint(0, T - w)
            f[b].narrow(taxis - 1, o, w).fill_(fill)
    return f


class Batches:
    """Endless stream of training batches of waveforms plus sentence lists."""

    def __init__(self, s: Data, seconds, seed, nonspeech, long=False, part=(0, 1)):
        self.pool = Pool(s.clips, s.boost, s.boost_times)
        self.aug = Augment(seed, self.pool, s.augment, s.far, s.event)
        self.rng, self.draw, self.part = (
            random.Random(seed),
            random.Random(seed + 7919 * part[0]),
            part,
        )  # every process makes the same plan
        self.seconds, self.max_sent, self.p_non, self.long, self.s = seconds, s.max_sentences, nonspeech, long, s
        self.langw = {"en": s.english, "es": 1.1, "fr": 1.1, "pt": 1.1, "de": 1.2, "zh": 1}
        self.langs = [l for l in self.langw if l in self.pool.bylang]

    def plan(self) -> dict:
        """one recording: list of clips of one language and the pauses around them"""
        r = self.rng
        if r.random() < self.p_non:
            return dict(non=True, n=int(SR * (30 if self.long else r.uniform(1, 5))))
        lang = r.choices(self.langs, [self.langw[l] for l in self.langs])[0]
        k = 1 if r.random() < 0.55 or self.max_sent == 1 else r.randint(2, self.max_sent)
        if self.long:
            k = r.choice([1, 2, 3, 4, 6, 8, 10])
        samevoice = None
        items, n = [], 0
        for _ in range(k):
            for _ in range(30):
                d = self.pool.items[r.choice(self.pool.bylang[lang])]
                if samevoice is None or d["voice"] == samevoice or r.random() < 0.03:
                    break
            samevoice = d["voice"] if r.random() < 0.7 else None
            gap = r.choice(
                [0.05, 0.15, 0.3, 0.5, 0.8, 1.2 if self.long or self.s.wide else 0.4, 2.5 if self.long else 0.3]
            ) * r.uniform(0.7, 1.3)
            if self.long and n + d["n"] * 1.17 + SR * (gap + 0.2) > 29.7 * SR:
                break
            items.append((d, gap))
            n += d["n"] + int(gap * SR)
        return dict(non=False, lang=lang, items=items, n=n)

    def render(self, p: dict) -> dict:
        r, a = self.draw, self.aug
        if p["non"]:
            return dict(x=a.nonspeech(p["n"]), lang=r.choice(self.langs), sents=[])
        parts, sents, pos, last = [], [], 0, None
        for d, gap in p["items"]:
            if d["voice"] != last or r.random() < 0.3:
                state = r.randint(0, 1 << 30)
            last = d["voice"]
            a.r.seed(state % (1 << 31))
            x = a.voice(self.pool.wav(d)) * 10 ** r.uniform(-0.25, 0)
            a.r.seed(r.randint(0, (1 << 31) - 1))
            g = int(gap * SR)
            e = (
                int(SR * r.choice([0.7, 1.5, 3]))
                if r.random() < self.s.event and (not self.long or pos + d["n"] < 24 * SR)
                else 0
            )
            if e and r.random() < 0.7:  # in the pause, louder or softer than the voice
                parts += [a.event(e) * 0.06 * 10 ** r.uniform(-0.7, 0.7), np.zeros(SR // 10, np.float32)]
                pos += e + SR // 10
            elif e:  # over the voice
                m = min(e, len(x))
                o = r.randint(0, len(x) - m)
                x[o : o + m] += a.event(e)[:m] * np.sqrt((x**2).mean()) * 10 ** (-r.uniform(4, 20) / 20)
            parts.append(np.zeros(g, np.float32))
            pos += g
            sents.append((pos / SR, (pos + len(x)) / SR, d["text"]))
            parts.append(x)
            pos += len(x)
        parts.append(np.zeros(int(SR * r.choice([0.1, 0.2, 0.4, 0.8])), np.float32))
        return dict(x=a.room(np.concatenate(parts)), lang=p["lang"], sents=sents)

    def __iter__(self):
        while True:
            plans = [self.plan() for _ in range(400 if not self.long else 16)]
            plans.sort(key=lambda p: p["n"])
            groups, cur = [], []
            for p in plans:
                if cur and (len(cur) + 1) * (p["n"] / SR + 0.6) > self.seconds:
                    groups.append(cur)
                    cur = []
                cur.append(p)
            groups.append(cur)
            self.rng.shuffle(groups)
            i, n = self.part
            for g in groups:
                if len(g) >= n:
                    yield self.collate([self.render(p) for p in g[i::n]])

    def collate(self, rs: list[dict]) -> tuple[torch.Tensor, list[int], list[str], list[list]]:
        n = 30 * SR if self.long else (max(len(r["x"]) for r in rs) + 319) // 320 * 320
        X = np.zeros((len(rs), n), np.float32)
        for i, r in enumerate(rs):
            x = r["x"][:n]
            X[i, : len(x)] = x
        if not hasattr(self, "phones"):
            self.phones = Phones()
        return (
            torch.from_numpy(X),
            [len(r["x"]) for r in rs],
            [r["lang"] for r in rs],
            [[(a, b, t, self.phones(t, r["lang"])) for a, b, t in r["sents"]] for r in rs],
        )


class Stream(torch.utils.data.IterableDataset):
    """Batches of a separate process."""

    def __init__(self, *args, seed, **kw):
        self.args, self.seed, self.kw = args, seed, kw

    def __iter__(self):
        torch.set_num_threads(1)
        w = torch.utils.data.get_worker_info()
        return iter(Batches(*self.args, seed=self.seed * 31 + (w.id if w else 0), **self.kw))


def loader(s, seconds, seed, nonspeech, **kw):
    """An endless stream of batches; s.workers processes make them, or this one."""
    ahead = dict(prefetch_factor=6) if s.workers else {}
    return iter(
        torch.utils.data.DataLoader(
            Stream(s, seconds, seed=seed, nonspeech=nonspeech, **kw), batch_size=None, num_workers=s.workers, **ahead
        )
    )


class Phones:
    """espeak-ng's phonemes of a sentence, the target of the helper CTC loss (letters and digits of its IPA, no
    stress)."""

    VOICE = {"en": "en-us", "es": "es", "fr": "fr", "pt": "pt-br", "de": "de", "zh": "cmn-latn-pinyin"}

    def __init__(self):
        self.es, self.cache, self.table = None, {}, {c: i + 1 for i, c in enumerate(PHONES)}

    def raw(self, text: str, lang: str) -> list[str]:
        import ctypes

        if self.es is None:
            from .synth import Espeak

            self.es = Espeak().l
            self.es.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self.es.espeak_SetVoiceByName(self.VOICE[lang].encode())
        p, out = ctypes.c_char_p(text.encode()), []
        while p.value:
            r = self.es.espeak_TextToPhonemes(ctypes.byref(p), 1, 2)
            if r:
                out.append(r.decode())
        return [c for c in "".join(out) if c not in " ˈˌː_-|,.?!()'" and not 0x300 <= ord(c) < 0x370]

    def __call__(self, text, lang):
        k = (lang, text)
        if k not in self.cache:
            self.cache[k] = [self.table[c] for c in self.raw(text, lang) if c in self.table]
        return self.cache[k]
