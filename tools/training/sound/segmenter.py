"""Speaker segmentation with the contract of pyannote/segmentation-3.0 as published by k2-fsa.

Graph: x [N,1,160000] -> STFT (320/160, as convolution) -> 40 log-mel bands, normalized over
the window -> convolution, stride 2 -> two bidirectional LSTM layers -> y [N,497,7],
log-probabilities of the powerset classes {}, {0}, {1}, {2}, {0,1}, {0,2}, {1,2}.
"""

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F

from ..onnxfile import export
from .corpus import HELD, Speech, room_noise
from .dsp import SR, activity, channel, convolve, mel_bank, normal, put, room

SECONDS, SPEAKERS, HIDDEN = 10, 3, 80
WINDOW, HOP, STRIDE, KERNEL = 320, 160, 2, 5
SHIFT, FIELD = HOP * STRIDE, WINDOW + HOP * (KERNEL - 1)
SAMPLES = SECONDS * SR
FRAMES = ((SAMPLES - WINDOW) // HOP + 1 - KERNEL) // STRIDE + 1
CLASSES = [c for k in range(3) for c in itertools.combinations(range(SPEAKERS), k)]


@dataclass(frozen=True)
class Settings:
    """config/segmenter.toml describes them."""

    speech: tuple[str, ...]
    out: str
    origin: str
    seeds: tuple[int, ...]
    mixtures: int
    held: int
    epochs: int
    batch: int
    rate: float
    alike: float


class Front(nn.Module):
    """[N,1,samples] -> [N,40,frames]: log-mel bands around 0."""

    def __init__(s):
        super().__init__()
        w = np.hanning(WINDOW + 1)[:WINDOW]
        k = np.arange(WINDOW // 2 + 1)[:, None] * np.arange(WINDOW)[None] * 2 * np.pi / WINDOW
        s.register_buffer(
            "k", torch.tensor(np.concatenate([np.cos(k) * w, -np.sin(k) * w])[:, None], dtype=torch.float32)
        )
        s.register_buffer(
            "mel", torch.tensor(mel_bank(40, WINDOW, 50, 7800, kaldi=False)[:, :, None], dtype=torch.float32)
        )

    def forward(s, x: torch.Tensor) -> torch.Tensor:
        f = F.conv1d(x, s.k, stride=HOP)
        n = WINDOW // 2 + 1
        m = F.conv1d(f[:, :n] ** 2 + f[:, n:] ** 2, s.mel)
        m = torch.log(m + 1e-7)
        return (m - m.mean(2, keepdim=True)) * 0.3


class Segmenter(nn.Module):
    def __init__(s):
        super().__init__()
        s.front = Front()
        s.conv = nn.Conv1d(40, 64, KERNEL, stride=STRIDE)
        s.lstm = nn.LSTM(64, HIDDEN, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
        s.fc = nn.Linear(2 * HIDDEN, 64)
        s.out = nn.Linear(64, len(CLASSES))

    def seq(s, f: torch.Tensor) -> torch.Tensor:  # [N,40,frames] -> log-probabilities [N,FRAMES,7]
        h, _ = s.lstm(F.relu(s.conv(f)).transpose(1, 2))
        return F.log_softmax(s.out(F.leaky_relu(s.fc(h))), 2)

    def forward(s, x: torch.Tensor) -> torch.Tensor:
        return s.seq(s.front(x))


def piece(r: np.random.Generator, sp: Speech, voice: str) -> tuple[np.ndarray, np.ndarray]:
    """One utterance or a part of one, with its activity by 10 ms."""
    x = sp.wav(int(r.choice(sp.spk[voice])))
    if r.random() < 0.45:
        a = int(r.uniform(0, 0.7) * len(x))
        x = x[a : a + int(r.uniform(0.4, 3.5) * SR)]
    x = x * 10 ** (r.uniform(-5, 5) / 20)
    return x, activity(x, close=0.3) if len(x) > 3200 else np.zeros(0, bool)


def table(r: np.random.Generator, sp: Speech, count: int, alike: float) -> list[str]:
    """The voices of a mixture; with probability `alike` they are warps of one recorded voice, which
    are harder to distinguish."""
    if alike and r.random() < alike:
        many = [names for names in sp.bases.values() if len(names) >= count]
        if many:
            return [str(v) for v in r.choice(many[int(r.integers(len(many)))], count, replace=False)]
    return [sp.names[int(k)] for k in r.choice(len(sp.names), count, replace=False)]


def mixture(r: np.random.Generator, sp: Speech, alike: float) -> tuple[np.ndarray, np.ndarray]:
    """A stretch of a conversation: (wave, activity of up to 3 voices [3, 10 ms])."""
    n = SAMPLES
    y, act = np.zeros(n, np.float32), np.zeros((SPEAKERS, n // 160), bool)
    count = int(r.choice([1, 2, 3], p=[0.15, 0.45, 0.4]))
    voices = table(r, sp, count, alike)
    gains = 10 ** (r.uniform(-4, 4, count) / 20)
    pace = r.choice([0, 1, 2], p=[0.35, 0.4, 0.25])  # few, some, many overlaps
    p, last = r.uniform(-3, 1.5), -1
    if r.random() < 0.04:
        p = SECONDS
    while p < SECONDS:
        others = [v for v in range(count) if v != last] or [0]
        v = int(r.choice(others)) if r.random() < 0.75 or last < 0 else last
        x, a = piece(r, sp, voices[v])
        if not len(a):
            continue
        put(y, act, v, x * gains[v], a, p)
        end = p + len(x) / SR
        if count > 1 and r.random() < (0.1, 0.25, 0.45)[pace]:  # a word while the other speaks
            u = int(r.choice([w for w in range(count) if w != v]))
            x2, a2 = piece(r, sp, voices[u])
            k = int(r.uniform(0.4, 1.8) * SR)
            if len(a2) > k // 160:
                put(y, act, u, x2[:k] * gains[u], a2[: k // 160], p + r.uniform(0, max(0.1, end - p - 0.5)))
        last = v
        p = end + (-r.uniform(0.2, 2.0) if r.random() < (0.1, 0.3, 0.55)[pace] else r.exponential(0.45))
    if r.random() < 0.35:
        y = convolve(y, room(r, r.uniform(0.08, 0.4)))
    if r.random() < 0.4:
        y = y + normal(room_noise(r, n), 0.08 * 10 ** (-r.uniform(8, 30) / 20))
    y = channel(r, y, 0.08, 30)
    y = y * 10 ** (r.uniform(-24, 3) / 20)
    return (y * min(1, 0.98 / (np.abs(y).max() + 1e-9))).astype(np.float32), act


def labels(act: np.ndarray) -> np.ndarray:
    """Activity by 10 ms -> by frame of the model; a third simultaneous voice is left out."""
    at = ((np.arange(FRAMES) * SHIFT + FIELD // 2) // 160).clip(0, act.shape[1] - 1)
    return act[:, at].T


def build(
    r: np.random.Generator, sp: Speech, front: Front, count: int, tag: str, alike: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    X, L, t0 = (
        np.zeros((count, 40, (SAMPLES - WINDOW) // HOP + 1), np.float16),
        np.zeros((count, FRAMES, SPEAKERS), bool),
        time.time(),
    )
    for i in range(count):
        y, act = mixture(r, sp, alike)
        with torch.no_grad():
            X[i] = front(torch.from_numpy(y)[None, None])[0].half().numpy()
        L[i] = labels(act)
        if i % 200 == 199:
            print(tag, i + 1, f"{time.time() - t0:.0f}s", flush=True)
    return X, L


def cached(path: str, make: Callable[[], tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    if not os.path.exists(path):
        X, L = make()
        np.save(path + ".x.npy", X)
        np.save(path + ".l.npy", L)
        open(path, "w").close()
    return np.load(path + ".x.npy", mmap_mode="r"), np.load(path + ".l.npy")


PERMS = list(itertools.permutations(range(SPEAKERS)))


def target(l: torch.Tensor) -> torch.Tensor:
    """[B,T,3] bool -> class numbers [B,T]; of three simultaneous voices the first two count."""
    n = l.long().cumsum(2)
    l = l & (n <= 2)
    code = (l.long() * torch.tensor([1, 2, 4])).sum(2)
    table = torch.zeros(8, dtype=torch.long)
    for i, c in enumerate(CLASSES):
        table[sum(1 << s for s in c)] = i
    return table[code]


def pit(logp: torch.Tensor, l: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross entropy under the best order of the local speakers, and that order."""
    losses = torch.stack(
        [
            F.nll_loss(logp.flatten(0, 1), target(l[:, :, list(p)]).flatten(), reduction="none")
            .view(len(l), -1)
            .mean(1)
            for p in PERMS
        ]
    )
    best = losses.min(0)
    return best.values.mean(), best.indices


def der(logp: torch.Tensor, l: torch.Tensor) -> list[float]:
    """Diarization error rate by frame within windows (missed, false, confused), best order."""
    _, order = pit(logp, l)
    member = torch.tensor([[s in c for s in range(SPEAKERS)] for c in CLASSES])
    hyp = member[logp.argmax(2)]
    ref = torch.stack([l[i][:, list(PERMS[o])] for i, o in enumerate(order)])
    nr, nh, both = ref.sum(2), hyp.sum(2), (ref & hyp).sum(2)
    miss, false, conf = (nr - nh).clamp(min=0).sum(), (nh - nr).clamp(min=0).sum(), (torch.minimum(nr, nh) - both).sum()
    return [100 * v.item() / nr.sum().item() for v in (miss, false, conf)]


def report(m: Segmenter, head: str, x: torch.Tensor, y: torch.Tensor) -> None:
    """Prints the errors on held-out windows."""
    m.eval()
    with torch.no_grad():
        p = torch.cat([m.seq(part) for part in x.split(32)])
    missed, false, confused = der(p, y)
    print(
        head,
        f"held-out: missed {missed:.1f}, false {false:.1f}, confused {confused:.1f} % loss {pit(p, y)[0]:.4f}",
        flush=True,
    )


def run(s: Settings) -> list[float]:
    """Trains the segmenter, or only makes the mixtures if there is no epoch; returns the loss of every step."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    m = Segmenter()
    if s.origin:
        m.load_state_dict(torch.load(s.origin))

    def mixtures(q: int):
        return build(np.random.default_rng(q), Speech(s.speech, {"train"}), m.front, s.mixtures, f"train {q}", s.alike)

    sets = [cached(f"{s.out}.{q}", lambda q=q: mixtures(q)) for q in s.seeds]
    XH, LH = cached(
        f"{s.out}.held", lambda: build(np.random.default_rng(2), Speech(s.speech, HELD), m.front, s.held, "held")
    )
    if not s.epochs:
        return []
    XH, LH = torch.from_numpy(np.array(XH)).float(), torch.from_numpy(LH)
    where = [(k, i) for k, (x, _) in enumerate(sets) for i in range(len(x))]
    B, steps = s.batch, len(where) // s.batch
    opt = torch.optim.AdamW(m.parameters(), 1e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, s.rate, total_steps=s.epochs * steps, pct_start=0.15)
    t0, losses = time.time(), []
    for e in range(s.epochs):
        m.train()
        perm = torch.randperm(len(where)).tolist()
        for b in range(steps):
            at = [where[i] for i in perm[b * B : (b + 1) * B]]
            f = torch.from_numpy(np.stack([sets[k][0][i] for k, i in at])).float()
            loss, _ = pit(m.seq(f), torch.from_numpy(np.stack([sets[k][1][i] for k, i in at])))
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            opt.step()
            sched.step()
            losses.append(loss.item())
            if b % 20 == 19:
                print(f"  {b + 1} loss {np.mean(losses[-b - 1 :]):.4f} {time.time() - t0:.0f}s", flush=True)
        torch.save(m.state_dict(), s.out + ".pt")
        report(m, f"epoch {e} loss {np.mean(losses[-steps:]):.4f} {time.time() - t0:.0f}s", XH, LH)
    store(m, s.out)
    return losses


def store(m: Segmenter, out: str) -> None:
    """Writes the ONNX file with the published one's metadata."""
    export(
        m,
        (torch.zeros(2, 1, SAMPLES),),
        out,
        input_names=["x"],
        output_names=["y"],
        dynamic_axes={"x": {0: "N"}, "y": {0: "N"}},
    )
    g = onnx.load(out)
    onnx.helper.set_model_props(
        g,
        {
            k: str(v)
            for k, v in dict(
                model_type="pyannote-segmentation-3.0",
                num_speakers=SPEAKERS,
                powerset_max_classes=2,
                num_classes=len(CLASSES),
                sample_rate=SR,
                window_size=SAMPLES,
                receptive_field_size=FIELD,
                receptive_field_shift=SHIFT,
            ).items()
        },
    )
    onnx.save(g, out)
