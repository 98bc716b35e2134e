"""Sound-event tagger with YAMNet's contract: waveform [n] -> scores [frames, 521].

Patches of 0.96 s, hop 0.48 s, 64 log-mel bands, front end inside the graph.
Only the columns named in events.CLASSES (and Speech) are trained; the others have zero
weights and a bias of -9 (score 0.0001).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from ..onnxfile import export
from .corpus import HELD, Events, Speech
from .dsp import SR, convolve, mel_bank, normal, room, tilt
from .events import CLASSES, PRIMARY

USED = sorted({0} | {i for _, l in CLASSES.values() for i in l})
COL = {c: k for k, c in enumerate(USED)}


@dataclass(frozen=True)
class Settings:
    """config/tagger.toml describes them."""

    speech: tuple[str, ...]
    events: tuple[str, ...]
    out: str
    minutes: float
    steps: int
    batch: int
    rate: float
    clips: int
    utterances: int
    held: int
    bfloat16: bool


class Mel(nn.Module):
    def __init__(s):
        super().__init__()
        w = np.hanning(401)[:400]
        k = np.arange(201)[:, None] * np.arange(400)[None] * 2 * np.pi / 400
        s.register_buffer(
            "k", torch.tensor(np.concatenate([np.cos(k) * w, -np.sin(k) * w])[:, None], dtype=torch.float32)
        )
        s.register_buffer(
            "mel", torch.tensor(mel_bank(64, 400, 60, 7600, kaldi=False)[:, :, None], dtype=torch.float32)
        )

    def power(s, x: torch.Tensor) -> torch.Tensor:  # [B,n] -> mel power [B,T,64]
        f = F.conv1d(x.unsqueeze(1), s.k, stride=160)
        return F.conv1d(f[:, :201] ** 2 + f[:, 201:] ** 2, s.mel).transpose(1, 2)


def logmel(p: torch.Tensor) -> torch.Tensor:
    return torch.log(p + 1e-7) * 0.2 + 0.8


class Net(nn.Module):
    def __init__(s):
        super().__init__()

        def cb(i, o, st, g=1):
            return nn.Sequential(nn.Conv2d(i, o, 3, st, 1, groups=g, bias=False), nn.BatchNorm2d(o), nn.ReLU())

        s.f = nn.Sequential(cb(1, 16, 2), cb(16, 32, 2), cb(32, 64, 2), cb(64, 112, 2), cb(112, 160, 1))
        s.d = nn.Dropout(0.15)
        s.o = nn.Linear(480, len(USED))

    def forward(s, x: torch.Tensor) -> torch.Tensor:  # [B,96,64] -> logits [B,used]
        h = s.f(x.unsqueeze(1))  # [B,160,6,4]
        lo, hi = h[:, :, :, :2].mean((2, 3)), h[:, :, :, 2:].mean((2, 3))
        return s.o(s.d(torch.cat([lo, hi, h.amax((2, 3))], 1)))


class Tagger(nn.Module):
    """The exported graph."""

    def __init__(s, mel, net):
        super().__init__()
        s.mel, s.f = mel, net.f
        s.o = net.o
        # column k of the answer = trained column USED.index(k), or the constant -9 after them
        s.register_buffer("pick", torch.tensor([COL.get(k, len(USED)) for k in range(521)]))

    def forward(s, waveform: torch.Tensor) -> torch.Tensor:
        n = torch._shape_as_tensor(waveform)[0]
        k = torch.clamp(torch.div(n - 15600 + 7679, 7680, rounding_mode="floor"), min=0) + 1
        x = torch.cat([waveform, torch.zeros(15600)])
        m = logmel(s.mel.power(x.unsqueeze(0)))[0]
        idx = torch.arange(0, k).unsqueeze(1) * 48 + torch.arange(0, 96).unsqueeze(0)
        h = s.f(m[idx].unsqueeze(1))
        lo, hi = h[:, :, :, :2].mean((2, 3)), h[:, :, :, 2:].mean((2, 3))
        h = torch.cat([lo, hi, h.amax((2, 3))], 1)
        z = s.o(h)
        return torch.sigmoid(torch.cat([z, z[:, :1] * 0 - 9.0], 1)[:, s.pick])


def target(name: str) -> np.ndarray:
    y = np.zeros(len(USED), np.float32)
    for i in [0] if name == "Speech" else CLASSES[name][1]:
        y[COL[i]] = 1
    return y


def patches(mel: Mel, waves: list[tuple[str, np.ndarray]]) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """[(name, wave)] -> mel power patches (float16 of log), target, clip number."""
    P, Y, I = [], [], []
    for c, (name, x) in enumerate(waves):
        with torch.no_grad():
            p = mel.power(torch.from_numpy(x)[None])[0]
        e = p.sum(1)
        for k in range(0, len(p) - 95, 48):
            q = p[k : k + 96]
            if name != "Silence" and e[k : k + 96].max() < e.max() * 10**-2.5:
                continue
            P.append(torch.log(q + 1e-12).half())
            Y.append(target(name))
            I.append(c)
    return torch.stack(P), torch.from_numpy(np.stack(Y)), np.array(I)


def load(
    sd: Sequence[str], ed: Sequence[str], split: str, splits: set[str], nspeech: int, seed: int, most: int
) -> list[tuple[str, np.ndarray]]:
    """(class, wave) of at most `most` clips of each class, and of `nspeech` stretches of speech."""
    ev, sp = Events(ed, split), Speech(sd, splits)
    W = [(c, ev.wav(i)) for c, l in ev.by.items() for i in l[:most]]
    r = np.random.default_rng(seed)
    n = int(3.2 * SR)
    while nspeech:
        x = sp.wav(int(r.integers(len(sp.u))))
        if len(x) >= n:
            a = r.integers(0, len(x) - n + 1)
            x = normal(x[a : a + n], 0.1)
            if r.random() < 0.4:
                x = convolve(x, room(r))
            if r.random() < 0.4:
                x = tilt(x, r.uniform(-8, 8))
            x = x + (r.standard_normal(n) * 10 ** r.uniform(-5, -2.5)).astype(np.float32)
            W.append(("Speech", x.astype(np.float32)))
            nspeech -= 1
    return W


def f1_table(S: np.ndarray, Y: np.ndarray, thr: float = 0.3) -> dict[str, float]:
    out = {}
    for name, idx in PRIMARY.items():
        k = COL[idx]
        a, b = S[:, k] > thr, Y[:, k] > 0.5
        tp = (a & b).sum()
        out[name] = 2 * tp / max(1, a.sum() + b.sum())
    return out


def clip_scores(net: Net, P: torch.Tensor, I: np.ndarray) -> np.ndarray:
    net.eval()
    with torch.no_grad():
        s = torch.cat(
            [
                torch.sigmoid(net(torch.log(torch.exp(P[i : i + 256].float()) + 1e-7) * 0.2 + 0.8))
                for i in range(0, len(P), 256)
            ]
        ).numpy()
    n = I.max() + 1
    out = np.zeros((n, s.shape[1]))
    for c in range(n):
        m = I == c
        if m.any():
            out[c] = s[m].mean(0)
    return out


class Mixer:
    """Draws batches: a patch through a microphone, a second sound in the background of some, a faint noise floor."""

    def __init__(self, P, Y, batch):
        self.P, self.Y, self.batch = P, Y, batch
        self.silent = Y[:, COL[494]] > 0.5
        self.gen = torch.Generator().manual_seed(1)

    def rnd(self, *shape) -> torch.Tensor:
        """Numbers from 0 to 1."""
        return torch.rand(*shape, generator=self.gen)

    def draw(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mel power, targets, and the weight of each target."""
        B, P, Y, sil, rnd = self.batch, self.P, self.Y, self.silent, self.rnd
        i, j = torch.randint(len(P), (B,), generator=self.gen), torch.randint(len(P), (B,), generator=self.gen)
        eq = F.interpolate((rnd(B, 1, 5) - 0.5) * 2.4, size=64, mode="linear", align_corners=True)  # microphone colour
        g = torch.where(sil[i], torch.zeros(B), -rnd(B) * 6.5 + 0.8)  # level, nepers of power
        a = torch.exp(P[i].float() + eq + g[:, None, None])
        rel = -rnd(B) * 4 + 0.5  # second sound, -15..+2 dB
        use = (rnd(B) < 0.35) & ~sil[i] & ~sil[j]
        b = torch.exp(P[j].float() + (g + rel)[:, None, None])
        x = a + b * use[:, None, None]
        nz = torch.exp(-rnd(B) * 8 - 8 + g)
        x = x + nz[:, None, None] * (~sil[i])[:, None, None] * 0.02
        y = torch.maximum(Y[i], Y[j] * (use & (rel > -2.3))[:, None])
        w = torch.where((use & (rel <= -2.3))[:, None] & (Y[j] > 0) & (Y[i] == 0), 0.0, 1.0)  # too faint: no opinion
        return x, y, w


def run(s: Settings) -> list[float]:
    """Trains the tagger for s.minutes of processor time, or for s.steps if not 0; returns the loss
    of every step."""
    torch.set_num_threads(1)
    torch.manual_seed(5)
    mel, net = Mel(), Net()
    t0 = time.process_time()
    P, Y, _ = patches(mel, load(s.speech, s.events, "train", {"train"}, s.utterances, 1, s.clips))
    PH, YH, IH = patches(mel, load(s.speech, s.events, "held", HELD, s.held, 2, s.clips))
    YC = np.stack(
        [
            YH[np.flatnonzero(IH == c)[0]].numpy() if (IH == c).any() else np.zeros(len(USED))
            for c in range(IH.max() + 1)
        ]
    )
    print(
        "patches",
        len(P),
        len(PH),
        f"{time.process_time() - t0:.0f}s",
        "columns",
        len(USED),
        "parameters",
        sum(p.numel() for p in net.parameters()),
        flush=True,
    )
    opt = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=5e-4)
    mixer, t0, last, mean, losses = Mixer(P, Y, s.batch), time.process_time(), 0, 0.0, []
    while True:
        step = len(losses)
        u = step / s.steps if s.steps else (time.process_time() - t0) / (60 * s.minutes)
        if u >= 1:
            break
        for g in opt.param_groups:
            g["lr"] = s.rate * min(1, (step + 1) / 50) * (0.5 * (1 + np.cos(np.pi * u)) + 0.004)
        x, y, w = mixer.draw()
        net.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=s.bfloat16):
            z = net(torch.log(x + 1e-7) * 0.2 + 0.8)
        loss = (F.binary_cross_entropy_with_logits(z.float(), y, reduction="none") * w * (1 + 2 * y)).sum(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        mean = 0.98 * mean + 0.02 * losses[-1] if step else losses[-1]
        if time.process_time() - t0 - last > 60:
            last = time.process_time() - t0
            f = f1_table(clip_scores(net, PH, IH), YC)
            print(f"{last:.0f}s step {step + 1} loss {mean:.3f} mean F1 {np.mean(list(f.values())):.3f}", flush=True)
            torch.save(net.state_dict(), s.out + ".pt")
    torch.save(net.state_dict(), s.out + ".pt")
    f = f1_table(clip_scores(net, PH, IH), YC)
    for k, v in sorted(f.items(), key=lambda e: e[1]):
        print(f"{v:.3f} {k}")
    print("mean F1", np.mean(list(f.values())))
    export(
        Tagger(mel, net),
        (torch.zeros(48000),),
        s.out,
        input_names=["waveform"],
        output_names=["scores"],
        dynamic_axes={"waveform": {0: "n"}, "scores": {0: "frames"}},
    )
    return losses
