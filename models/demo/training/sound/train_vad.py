"""VAD with the input/output contract of Silero VAD v5 (16 kHz).

usage: train_vad.py SPEECHDIRS EVENTDIRS OUT.onnx MIXES EPOCHS [FROM.onnx]
Folders by commas.  With FROM, a finished model's weights are trained further and the new
ones are put into a copy of that file, so that its graph and metadata stay as they are.
Graph: 64+512 samples -> STFT (256/128, as convolution) -> 40 log-mel x 4 frames ->
dense 128 -> LSTM cell 128 -> dense -> probability.
EPOCHS 0 only makes the mixtures.
Environment: SEED of the mixtures, or several by commas, MIXES of each (processes that make one
each can run beside each other); LR, the highest learning rate; FREE and TURNS, shares of
mixtures.free_mix and mixtures.turn_mix; WEIGHT of their speech-free frames in the loss;
BATCH.
OUT.onnx.SEED.npz keeps the features of the mixtures, OUT.onnx.pt the last epoch's weights.
"""
import inspect
import os
import sys
import time

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from corpus import *
from dsp import *
from mixtures import free_mix, through_opus, turn_mix
from onnx import numpy_helper

torch.set_num_threads(1)


class Front(nn.Module):
    def __init__(s):
        super().__init__()
        w = np.hanning(257)[:256]
        k = np.arange(129)[:, None] * np.arange(256)[None] * 2 * np.pi / 256
        s.register_buffer("k", torch.tensor(np.concatenate([np.cos(k) * w, -np.sin(k) * w])[:, None], dtype=torch.float32))
        s.register_buffer("mel", torch.tensor(mel_bank(40, 256, 50, 7800, kaldi=False)[:, :, None], dtype=torch.float32))

    def forward(s, x):                       # [N,576] -> [N,160]
        x = torch.cat([x, torch.flip(x[:, 511:575], [1])], 1)   # reflect 64 at the right
        f = F.conv1d(x.unsqueeze(1), s.k, stride=128)
        p = f[:, :129] ** 2 + f[:, 129:] ** 2
        m = F.conv1d(p, s.mel)
        return (torch.log(m + 1e-6) * .25 + 1.0).flatten(1)


class Vad(nn.Module):
    def __init__(s):
        super().__init__()
        s.front = Front()
        s.fc = nn.Linear(160, 128)
        s.lstm = nn.LSTM(128, 128, batch_first=True)
        s.out = nn.Linear(128, 1)

    def seq(s, f):                           # features [B,T,160] -> logits [B,T]
        h, _ = s.lstm(F.relu(s.fc(f)))
        return s.out(F.relu(h)).squeeze(-1)


class Cell(nn.Module):
    """One step, written with plain matrix products so that the graph is small."""
    def __init__(s, v):
        super().__init__()
        s.v = v

    def forward(s, input, state, sr):
        x = F.relu(s.v.fc(s.v.front(input)))
        h, c = state[0], state[1]
        L = s.v.lstm
        g = F.linear(x, L.weight_ih_l0, L.bias_ih_l0) + F.linear(h, L.weight_hh_l0, L.bias_hh_l0)
        i, f, z, o = g.split(128, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
        h = torch.sigmoid(o) * torch.tanh(c)
        p = torch.sigmoid(s.v.out(F.relu(h)))
        return p + (sr * 0).to(p.dtype), torch.stack([h, c])


def chunks(y):
    """Wave -> [T,576] with 64 samples of context."""
    T = len(y) // 512
    z = np.concatenate([np.zeros(64, np.float32), y[:T * 512]])
    return np.lib.stride_tricks.sliding_window_view(z, 576)[::512].copy()


def labels(act, T):
    a = np.repeat(act, 160)[:T * 512].astype(np.float32)
    a = np.pad(a, (0, T * 512 - len(a)))
    return a.reshape(T, 512).mean(1)


def build(r, sp, ev, front, count, sec, free, turns, tag):
    """Features [count,T,160], labels [count,T] and the kind of each mixture: 0 speech before a
    background, 1 speech and sounds by turns, 2 no speech."""
    Fs, Ls, Ks = [], [], []
    t0 = time.time()
    while len(Fs) < count:
        waves, acts = [], []
        for _ in range(min(32, count - len(Fs))):
            k = r.random()
            kind = 2 if k < free else 1 if k < free + turns else 0
            y, act = free_mix(r, ev, sec) if kind == 2 else turn_mix(r, sp, ev, sec) if kind == 1 else vad_mix(r, sp, ev, sec)[:2]
            waves.append(y); acts.append(act); Ks.append(kind)
        if r.random() < .4:
            waves = through_opus(waves, int(r.integers(14, 40)))
        for y, act in zip(waves, acts):
            c = chunks(y)
            with torch.no_grad():
                Fs.append(front(torch.from_numpy(c)).half())
            Ls.append(torch.from_numpy(labels(act, len(c))))
        print(tag, len(Fs), f"{time.time()-t0:.0f}s", flush=True)
    return torch.stack(Fs), torch.stack(Ls), torch.tensor(Ks)


def f1(p, l):
    a, b = p > .5, l > .5
    tp = (a & b).sum().item()
    return 2 * tp / max(1, 2 * tp + (a & ~b).sum().item() + (~a & b).sum().item())


def cached(path, make):
    if not os.path.exists(path):
        np.savez(path, *[t.numpy() for t in make()])
    z = np.load(path)
    return [torch.from_numpy(z[k]) for k in z.files]


def main():
    sd, ed, out = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
    mixes, epochs, origin = int(sys.argv[4]), int(sys.argv[5]), (sys.argv[6:] + [None])[0]
    env = lambda k, d: float(os.environ.get(k, d))
    seeds = os.environ.get("SEED", "1").split(",")
    torch.manual_seed(1)
    m = Vad()
    if origin:
        load_onnx(m, origin)
    make = lambda q: lambda: build(np.random.default_rng(int(q)), Speech(sd, {"train"}), Events(ed, "train"), m.front, mixes, 10.0, env("FREE", .3), env("TURNS", .25), "train " + q)
    X, L, K = map(torch.cat, zip(*[cached(f"{out}.{q}.npz", make(q)) for q in seeds]))
    if not epochs:
        return
    XH, LH, KH = cached(f"{out}.held.npz", lambda: build(np.random.default_rng(2), Speech(sd, {"held_base", "held_warp", "held_espeak"}), Events(ed, "held"), m.front, 96, 10.0, .33, .33, "held"))
    mixes = len(X)

    def report(head):
        m.eval()
        with torch.no_grad():
            p = torch.sigmoid(m.seq(XH.float()))
        print(head, f"held-out F1 {f1(p[KH == 0], LH[KH == 0]):.4f}, by turns {f1(p[KH == 1], LH[KH == 1]):.4f}, speech in no speech at 0.35: {(p[KH == 2] > .35).float().mean():.4f}", flush=True)

    opt = torch.optim.AdamW(m.parameters(), 2e-3, weight_decay=1e-3)
    B = int(env("BATCH", 32))
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, env("LR", 4e-3), total_steps=epochs * (mixes // B), pct_start=.15)
    report("start")
    t0, weight = time.time(), env("WEIGHT", 1.5)
    for e in range(epochs):
        m.train()
        tot = 0
        perm = torch.randperm(mixes)
        for b in range(mixes // B):
            i = perm[b * B:(b + 1) * B]
            f = X[i].float() + torch.empty(B, 1, 1).uniform_(-.35, .35)   # level
            w = 1 + (weight - 1) * ((K[i] > 0)[:, None] & (L[i] < .5)).float()
            loss = F.binary_cross_entropy_with_logits(m.seq(f), L[i] * .98 + .01, weight=w)
            opt.zero_grad(); loss.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            opt.step(); sched.step(); tot += loss.item()
        report(f"epoch {e} loss {tot/(mixes//B):.4f} {time.time()-t0:.0f}s")
        torch.save(m.state_dict(), out + ".pt")
        if origin:
            store_onnx(m, origin, out)
    if not origin:
        export(m, out)


def load_onnx(m, path):
    """Weights of a finished model (float16 or float32 initializers) into m."""
    t = {i.name.removesuffix("_h"): numpy_helper.to_array(i).astype(np.float32) for i in onnx.load(path).graph.initializer}
    m.load_state_dict({k: torch.from_numpy(t["v." + k].copy()) for k in m.state_dict()})


def store_onnx(m, origin, path):
    """The file `origin` with m's weights, each in the number format it had."""
    g = onnx.load(origin)
    w = m.state_dict()
    for i in g.graph.initializer:
        k = i.name.removesuffix("_h").removeprefix("v.")
        i.CopyFrom(numpy_helper.from_array(w[k].numpy().astype(numpy_helper.to_array(i).dtype), i.name))
    onnx.checker.check_model(g)
    onnx.save(g, path)


def export(m, out):
    old = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}   # torch 2.5 and later
    torch.onnx.export(Cell(m).eval(), (torch.zeros(2, 576), torch.zeros(2, 2, 128), torch.tensor(16000, dtype=torch.int64)), out,
                      input_names=["input", "state", "sr"], output_names=["output", "stateN"], opset_version=16,
                      dynamic_axes={"input": {0: "N"}, "state": {1: "N"}, "output": {0: "N"}, "stateN": {1: "N"}}, **old)


if __name__ == "__main__":
    main()
