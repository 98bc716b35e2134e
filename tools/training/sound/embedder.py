"""Speaker embedder with the ECAPA contract: feats [N,T,80] -> embs [N,192].

A small TDNN (stride 2, three squeeze-excite blocks, attentive statistics pooling),
trained with additive-angular-margin softmax over the training voices.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from ..onnxfile import export
from .corpus import Speech
from .dsp import convolve, fbank, room, tilt

C = 192


@dataclass(frozen=True)
class Settings:
    """config/embedder.toml describes them."""

    speech: tuple[str, ...]
    out: str
    origin: str
    minutes: float
    steps: int
    batch: int
    rate: float
    crops: tuple[int, ...]
    margin_rise: float
    over: float
    bfloat16: bool


class Block(nn.Module):
    def __init__(s, c, dil):
        super().__init__()
        s.a = nn.Conv1d(c, c, 1)
        s.ba = nn.BatchNorm1d(c)
        s.b = nn.Conv1d(c, c, 3, padding=dil, dilation=dil, groups=4)
        s.bb = nn.BatchNorm1d(c)
        s.c = nn.Conv1d(c, c, 1)
        s.bc = nn.BatchNorm1d(c)
        s.s1 = nn.Linear(c, 48)
        s.s2 = nn.Linear(48, c)

    def forward(s, x: torch.Tensor) -> torch.Tensor:
        y = s.ba(F.relu(s.a(x)))
        y = s.bb(F.relu(s.b(y)))
        y = s.bc(F.relu(s.c(y)))
        g = torch.sigmoid(s.s2(F.relu(s.s1(y.mean(2)))))
        return x + y * g.unsqueeze(2)


class Ecapa(nn.Module):
    def __init__(s, c=C, agg=256):
        super().__init__()
        s.c0 = nn.Conv1d(80, c, 5, stride=2, padding=2)
        s.b0 = nn.BatchNorm1d(c)
        s.l = nn.ModuleList([Block(c, d) for d in (1, 2, 3)])
        s.m = nn.Conv1d(3 * c, agg, 1)
        s.a1 = nn.Conv1d(agg, 64, 1)
        s.a2 = nn.Conv1d(64, agg, 1)
        s.bp = nn.BatchNorm1d(2 * agg)
        s.fc = nn.Linear(2 * agg, 192)
        s.bo = nn.BatchNorm1d(192)

    def forward(s, feats: torch.Tensor) -> torch.Tensor:
        x = feats.transpose(1, 2)
        x = s.b0(F.relu(s.c0(x)))
        hs = []
        for b in s.l:
            x = b(x)
            hs.append(x)
        h = F.relu(s.m(torch.cat(hs, 1)))
        w = torch.softmax(s.a2(torch.tanh(s.a1(h))), 2)
        mu = (h * w).sum(2)
        sd = ((h * h * w).sum(2) - mu * mu).clamp(min=1e-5).sqrt()
        return s.bo(s.fc(s.bp(torch.cat([mu, sd], 1))))


class Margin(nn.Module):
    def __init__(s, n, scale=24.0):
        super().__init__()
        s.w = nn.Parameter(torch.randn(n, 192) * 0.05)
        s.scale = scale

    def forward(s, e: torch.Tensor, y: torch.Tensor, m: float) -> torch.Tensor:
        c = F.linear(F.normalize(e), F.normalize(s.w)).float()
        ct = c.gather(1, y[:, None]).clamp(-0.999, 0.999)
        t = torch.cos(torch.acos(ct) + m)
        return F.cross_entropy(s.scale * c.scatter(1, y[:, None], t.to(c.dtype)), y, label_smoothing=0.02)


def features(sp: Speech, seed: int = 0, augment: bool = True) -> dict[str, np.ndarray]:
    """All utterances as fbank (float16), clean and degraded copies; [(spk, feats)]."""
    r = np.random.default_rng(seed)
    out = {}
    for name in sp.names:
        L = []
        for i in sp.spk[name]:
            x = sp.wav(i)
            L.append(fbank(x, False).astype(np.float16))
            if augment:
                y = x
                if r.random() < 0.5:
                    y = convolve(y, room(r, r.uniform(0.08, 0.4)))
                y = y + (r.standard_normal(len(y)) * 0.08 * 10 ** (-r.uniform(8, 35) / 20)).astype(np.float32)
                if r.random() < 0.5:
                    y = tilt(y, r.uniform(-6, 6))
                L.append(fbank(y, False).astype(np.float16))
        out[name] = np.concatenate(L)
    return out


def stretch(r: np.random.Generator, f: np.ndarray, T: int) -> np.ndarray:
    i = r.integers(0, max(1, len(f) - T))
    return f[i : i + T].astype(np.float32)


def crop(r: np.random.Generator, f: np.ndarray, T: int) -> np.ndarray:
    x = stretch(r, f, T)
    return x - x.mean(0)


def spoken_over(r: np.random.Generator, f: np.ndarray, other: np.ndarray, T: int) -> np.ndarray:
    """A crop with another voice, softly throughout or about as loud for a moment."""
    x = stretch(r, f, T)
    n, a = min(len(x), len(other)), 0
    if r.random() < 0.5:
        length, db = n, -r.uniform(8, 22)
    else:
        length, db = int(r.uniform(0.1, 0.4) * n), -r.uniform(-3, 12)
        a = int(r.integers(0, n - length))
    at = slice(a, a + length)
    x[at] = np.logaddexp(x[at], stretch(r, other, T)[:n][at] + db * math.log(10) / 10)
    return x - x.mean(0)


def heard(
    r: np.random.Generator, feats: dict[str, np.ndarray], names: list[str], name: str, T: int, over: float
) -> np.ndarray:
    """A crop of a voice, with probability `over` one with another voice in it."""
    if over and r.random() < over:
        return spoken_over(r, feats[name], feats[names[int(r.integers(len(names)))]], T)
    return crop(r, feats[name], T)


def eer(same: np.ndarray, diff: np.ndarray) -> tuple[float, float]:
    s = np.sort(same)
    d = np.sort(diff)
    th = np.linspace(min(s[0], d[0]), max(s[-1], d[-1]), 2000)
    fr = np.searchsorted(s, th) / len(s)
    fa = 1 - np.searchsorted(d, th) / len(d)
    k = np.argmin(np.abs(fr - fa))
    return (fr[k] + fa[k]) / 2, th[k]


def evaluate(
    embed: Callable[[np.ndarray], np.ndarray],
    feats: dict[str, np.ndarray],
    sec: float = 3.0,
    per: int = 8,
    seed: int = 5,
) -> tuple[tuple[float, float], tuple[float, ...]]:
    r = np.random.default_rng(seed)
    T = int(sec * 100)
    names = sorted(feats)
    X = np.stack([crop(r, feats[n], T) for n in names for _ in range(per)])
    E = np.concatenate([embed(X[i : i + 64]) for i in range(0, len(X), 64)])
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    S = E @ E.T
    lab = np.repeat(np.arange(len(names)), per)
    iu = np.triu_indices(len(lab), 1)
    same = lab[iu[0]] == lab[iu[1]]
    v = S[iu]
    return eer(v[same], v[~same]), (
        v[same].mean(),
        np.percentile(v[same], 5),
        v[~same].mean(),
        np.percentile(v[~same], 95),
    )


def centres(net: Ecapa, feats: dict[str, np.ndarray]) -> torch.Tensor:
    """The mean embedding of eight crops of each voice: the class centers of a finished net."""
    net.eval()
    r = np.random.default_rng(1)
    with torch.no_grad():
        return torch.stack(
            [
                F.normalize(net(torch.from_numpy(np.stack([crop(r, feats[n], 200) for _ in range(8)])))).mean(0)
                for n in sorted(feats)
            ]
        )


def run(s: Settings) -> list[float]:
    """Trains the embedder for s.minutes of processor time, or for s.steps if not 0; returns the
    loss of every step."""
    torch.set_num_threads(1)
    t0 = time.process_time()
    tr = features(Speech(s.speech, {"train"}))
    held = {k: features(Speech(s.speech, {k}), 1, False) for k in ("held_base", "held_warp", "held_espeak")}
    print(
        "features",
        f"{time.process_time() - t0:.0f}s",
        len(tr),
        "voices",
        sum(map(len, tr.values())) // 100,
        "s",
        {k: len(v) for k, v in held.items()},
        flush=True,
    )
    names = sorted(tr)
    torch.manual_seed(3)
    net, head = Ecapa(), Margin(len(names))
    print("parameters", sum(p.numel() for p in net.parameters()))
    if s.origin:
        net.load_state_dict(torch.load(s.origin))
        with torch.no_grad():
            head.w.copy_(centres(net, tr))
    ps = list(net.parameters()) + list(head.parameters())
    opt = torch.optim.AdamW(ps, 2e-3, weight_decay=2e-4)
    r = np.random.default_rng(9)
    emb = lambda X: net(torch.from_numpy(X)).detach().numpy()
    t0, last, mean, losses = time.process_time(), 0, 0.0, []
    while True:
        step = len(losses)
        u = step / s.steps if s.steps else (time.process_time() - t0) / (60 * s.minutes)
        if u >= 1:
            break
        lr = s.rate * min(1, step / 60) * (0.5 * (1 + np.cos(np.pi * u)) + 0.005)
        for g in opt.param_groups:
            g["lr"] = lr
        m = 0.25 * min(1, u / s.margin_rise) if s.margin_rise else 0.25
        T = int(r.choice(s.crops))
        y = r.integers(0, len(names), s.batch)
        x = torch.from_numpy(np.stack([heard(r, tr, names, names[k], T, s.over) for k in y]))
        if r.random() < 0.5:  # blank a band
            a = r.integers(0, 74)
            x[:, :, a : a + r.integers(2, 7)] = 0
        net.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=s.bfloat16):
            e = net(x)
        loss = head(e.float(), torch.from_numpy(y), m)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(ps, 3.0)
        opt.step()
        losses.append(loss.item())
        mean = 0.98 * mean + 0.02 * losses[-1] if step else losses[-1]
        if time.process_time() - t0 - last > 45:
            last = time.process_time() - t0
            net.eval()
            print(
                f"{last:.0f}s step {step + 1} loss {mean:.3f} "
                + " ".join(f"{k} EER {evaluate(emb, v)[0][0] * 100:.1f}%" for k, v in held.items()),
                flush=True,
            )
            torch.save(net.state_dict(), s.out + ".pt")
    net.eval()
    torch.save(net.state_dict(), s.out + ".pt")
    export(
        net,
        (torch.zeros(2, 200, 80),),
        s.out,
        input_names=["feats"],
        output_names=["embs"],
        dynamic_axes={"feats": {0: "N", 1: "T"}, "embs": {0: "N"}},
    )
    for k, v in held.items():
        for sec in (1.5, 3.0, 6.0):
            e, c = evaluate(emb, v, sec)
            print(
                f"{k} {sec}s EER {e[0] * 100:.2f}% at {e[1]:.3f}; cosine same mean {c[0]:.2f} p5 {c[1]:.2f}, other "
                f"mean {c[2]:.2f} p95 {c[3]:.2f}",
                flush=True,
            )
    return losses
