"""VAD with the input/output contract of Silero VAD v5 (16 kHz).

Graph: 64+512 samples -> STFT (256/128, as convolution) -> 40 log-mel x 4 frames ->
dense 128 -> LSTM cell 128 -> dense -> probability.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import numpy_helper

from ..onnxfile import export
from .corpus import HELD, Events, Speech, vad_mix
from .dsp import mel_bank
from .mixtures import free_mix, through_opus, turn_mix

SECONDS = 10.0  # of a mixture


@dataclass(frozen=True)
class Settings:
    """config/vad.toml describes them."""

    speech: tuple[str, ...]
    events: tuple[str, ...]
    out: str
    origin: str
    seeds: tuple[int, ...]
    mixtures: int
    held: int
    epochs: int
    batch: int
    rate: float
    free: float
    turns: float
    weight: float


class Front(nn.Module):
    def __init__(s):
        super().__init__()
        w = np.hanning(257)[:256]
        k = np.arange(129)[:, None] * np.arange(256)[None] * 2 * np.pi / 256
        s.register_buffer(
            "k", torch.tensor(np.concatenate([np.cos(k) * w, -np.sin(k) * w])[:, None], dtype=torch.float32)
        )
        s.register_buffer(
            "mel", torch.tensor(mel_bank(40, 256, 50, 7800, kaldi=False)[:, :, None], dtype=torch.float32)
        )

    def forward(s, x: torch.Tensor) -> torch.Tensor:  # [N,576] -> [N,160]
        x = torch.cat([x, torch.flip(x[:, 511:575], [1])], 1)  # reflect 64 at the right
        f = F.conv1d(x.unsqueeze(1), s.k, stride=128)
        p = f[:, :129] ** 2 + f[:, 129:] ** 2
        m = F.conv1d(p, s.mel)
        return (torch.log(m + 1e-6) * 0.25 + 1.0).flatten(1)


class Vad(nn.Module):
    def __init__(s):
        super().__init__()
        s.front = Front()
        s.fc = nn.Linear(160, 128)
        s.lstm = nn.LSTM(128, 128, batch_first=True)
        s.out = nn.Linear(128, 1)

    def seq(s, f: torch.Tensor) -> torch.Tensor:  # features [B,T,160] -> logits [B,T]
        h, _ = s.lstm(F.relu(s.fc(f)))
        return s.out(F.relu(h)).squeeze(-1)


class Cell(nn.Module):
    """One step, written with plain matrix products so that the graph is small."""

    def __init__(s, v):
        super().__init__()
        s.v = v

    def forward(s, input: torch.Tensor, state: torch.Tensor, sr: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = F.relu(s.v.fc(s.v.front(input)))
        h, c = state[0], state[1]
        L = s.v.lstm
        g = F.linear(x, L.weight_ih_l0, L.bias_ih_l0) + F.linear(h, L.weight_hh_l0, L.bias_hh_l0)
        i, f, z, o = g.split(128, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
        h = torch.sigmoid(o) * torch.tanh(c)
        p = torch.sigmoid(s.v.out(F.relu(h)))
        return p + (sr * 0).to(p.dtype), torch.stack([h, c])


def chunks(y: np.ndarray) -> np.ndarray:
    """Wave -> [T,576] with 64 samples of context."""
    T = len(y) // 512
    z = np.concatenate([np.zeros(64, np.float32), y[: T * 512]])
    return np.lib.stride_tricks.sliding_window_view(z, 576)[::512].copy()


def labels(act: np.ndarray, T: int) -> np.ndarray:
    a = np.repeat(act, 160)[: T * 512].astype(np.float32)
    a = np.pad(a, (0, T * 512 - len(a)))
    return a.reshape(T, 512).mean(1)


def build(
    r: np.random.Generator,
    sp: Speech,
    ev: Events,
    front: Front,
    count: int,
    sec: float,
    free: float,
    turns: float,
    tag: str,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features [count,T,160], labels [count,T] and the kind of each mixture: 0 speech with a
    background, 1 alternating speech and sounds, 2 no speech."""
    Fs, Ls, Ks = [], [], []
    t0 = time.time()
    while len(Fs) < count:
        waves, acts = [], []
        for _ in range(min(32, count - len(Fs))):
            k = r.random()
            kind = 2 if k < free else 1 if k < free + turns else 0
            y, act = (
                free_mix(r, ev, sec)
                if kind == 2
                else turn_mix(r, sp, ev, sec)
                if kind == 1
                else vad_mix(r, sp, ev, sec)[:2]
            )
            waves.append(y)
            acts.append(act)
            Ks.append(kind)
        if r.random() < 0.4:
            waves = through_opus(waves, int(r.integers(14, 40)))
        for y, act in zip(waves, acts):
            c = chunks(y)
            with torch.no_grad():
                Fs.append(front(torch.from_numpy(c)).half())
            Ls.append(torch.from_numpy(labels(act, len(c))))
        print(tag, len(Fs), f"{time.time() - t0:.0f}s", flush=True)
    return torch.stack(Fs), torch.stack(Ls), torch.tensor(Ks)


def f1(p: torch.Tensor, l: torch.Tensor) -> float:
    a, b = p > 0.5, l > 0.5
    tp = (a & b).sum().item()
    return 2 * tp / max(1, 2 * tp + (a & ~b).sum().item() + (~a & b).sum().item())


def cached(path: str, make: Callable[[], tuple[torch.Tensor, ...]]) -> list[torch.Tensor]:
    if not os.path.exists(path):
        np.savez(path, *[t.numpy() for t in make()])
    z = np.load(path)
    return [torch.from_numpy(z[k]) for k in z.files]


def report(m: Vad, head: str, held: list[torch.Tensor]) -> None:
    """Prints the detector's results on held-out mixtures of each kind."""
    x, y, kind = held
    m.eval()
    with torch.no_grad():
        p = torch.sigmoid(m.seq(x.float()))
    wrong = (p[kind == 2] > 0.35).float().mean()
    print(
        head,
        f"held-out F1 {f1(p[kind == 0], y[kind == 0]):.4f}, by turns {f1(p[kind == 1], y[kind == 1]):.4f},",
        f"speech in no speech at 0.35: {wrong:.4f}",
        flush=True,
    )


def run(s: Settings) -> list[float]:
    """Trains the detector, or only makes the mixtures if there is no epoch; returns the loss of every step."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    m = Vad()
    if s.origin:
        load_onnx(m, s.origin)

    def mixtures(q: int):
        return build(
            np.random.default_rng(q),
            Speech(s.speech, {"train"}),
            Events(s.events, "train"),
            m.front,
            s.mixtures,
            SECONDS,
            s.free,
            s.turns,
            f"train {q}",
        )

    X, L, K = map(torch.cat, zip(*[cached(f"{s.out}.{q}.npz", lambda q=q: mixtures(q)) for q in s.seeds]))
    if not s.epochs:
        return []
    held = cached(
        f"{s.out}.held.npz",
        lambda: build(
            np.random.default_rng(2),
            Speech(s.speech, HELD),
            Events(s.events, "held"),
            m.front,
            s.held,
            SECONDS,
            0.33,
            0.33,
            "held",
        ),
    )
    steps, B = len(X) // s.batch, s.batch
    opt = torch.optim.AdamW(m.parameters(), 2e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, s.rate, total_steps=s.epochs * steps, pct_start=0.15)
    report(m, "start", held)
    t0, losses = time.time(), []
    for e in range(s.epochs):
        m.train()
        perm = torch.randperm(len(X))
        for b in range(steps):
            i = perm[b * B : (b + 1) * B]
            f = X[i].float() + torch.empty(B, 1, 1).uniform_(-0.35, 0.35)  # level
            w = 1 + (s.weight - 1) * ((K[i] > 0)[:, None] & (L[i] < 0.5)).float()
            loss = F.binary_cross_entropy_with_logits(m.seq(f), L[i] * 0.98 + 0.01, weight=w)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            opt.step()
            sched.step()
            losses.append(loss.item())
        report(m, f"epoch {e} loss {np.mean(losses[-steps:]):.4f} {time.time() - t0:.0f}s", held)
        torch.save(m.state_dict(), s.out + ".pt")
        if s.origin:
            store_onnx(m, s.origin, s.out)
    if not s.origin:
        store(m, s.out)
    return losses


def load_onnx(m: Vad, path: str) -> None:
    """Weights of a finished model (float16 or float32 initializers) into m."""
    t = {
        i.name.removesuffix("_h"): numpy_helper.to_array(i).astype(np.float32)
        for i in onnx.load(path).graph.initializer
    }
    m.load_state_dict({k: torch.from_numpy(t["v." + k].copy()) for k in m.state_dict()})


def store_onnx(m: Vad, origin: str, path: str) -> None:
    """Writes the file `origin` with m's weights, each in its original number format."""
    g = onnx.load(origin)
    w = m.state_dict()
    for i in g.graph.initializer:
        k = i.name.removesuffix("_h").removeprefix("v.")
        i.CopyFrom(numpy_helper.from_array(w[k].numpy().astype(numpy_helper.to_array(i).dtype), i.name))
    onnx.checker.check_model(g)
    onnx.save(g, path)


def store(m: Vad, out: str) -> None:
    """Writes the detector's step as an ONNX file."""
    export(
        Cell(m),
        (torch.zeros(2, 576), torch.zeros(2, 2, 128), torch.tensor(16000, dtype=torch.int64)),
        out,
        input_names=["input", "state", "sr"],
        output_names=["output", "stateN"],
        dynamic_axes={"input": {0: "N"}, "state": {1: "N"}, "output": {0: "N"}, "stateN": {1: "N"}},
    )
