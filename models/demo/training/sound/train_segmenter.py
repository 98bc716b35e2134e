"""Speaker segmentation with the contract of pyannote/segmentation-3.0 as k2-fsa publishes it.

usage: train_segmenter.py SPEECHDIRS OUT.onnx MIXES EPOCHS [FROM.pt]
Folders by commas.  Graph: x [N,1,160000] -> STFT (320/160, as convolution) -> 40 log-mel bands,
normalized over the window -> convolution, stride 2 -> two bidirectional LSTM layers -> y [N,497,7],
log-probabilities of the powerset classes {}, {0}, {1}, {2}, {0,1}, {0,2}, {1,2}.
EPOCHS 0 only makes the mixtures.
Environment: SEED of the mixtures, or several by commas, MIXES of each; LR; BATCH.
OUT.onnx.SEED.npz keeps features and labels, OUT.onnx.pt the last epoch's weights.
"""
import inspect
import itertools
import os
import sys
import time

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from corpus import Speech, band, room_noise
from dsp import *

torch.set_num_threads(1)
SECONDS, SPEAKERS, HIDDEN = 10, 3, 80
WINDOW, HOP, STRIDE, KERNEL = 320, 160, 2, 5
SHIFT, FIELD = HOP * STRIDE, WINDOW + HOP * (KERNEL - 1)
SAMPLES = SECONDS * SR
FRAMES = ((SAMPLES - WINDOW) // HOP + 1 - KERNEL) // STRIDE + 1
CLASSES = [c for k in range(3) for c in itertools.combinations(range(SPEAKERS), k)]


class Front(nn.Module):
    """[N,1,samples] -> [N,40,frames]: log-mel bands around 0."""
    def __init__(s):
        super().__init__()
        w = np.hanning(WINDOW + 1)[:WINDOW]
        k = np.arange(WINDOW // 2 + 1)[:, None] * np.arange(WINDOW)[None] * 2 * np.pi / WINDOW
        s.register_buffer("k", torch.tensor(np.concatenate([np.cos(k) * w, -np.sin(k) * w])[:, None], dtype=torch.float32))
        s.register_buffer("mel", torch.tensor(mel_bank(40, WINDOW, 50, 7800, kaldi=False)[:, :, None], dtype=torch.float32))

    def forward(s, x):
        f = F.conv1d(x, s.k, stride=HOP)
        n = WINDOW // 2 + 1
        m = F.conv1d(f[:, :n] ** 2 + f[:, n:] ** 2, s.mel)
        m = torch.log(m + 1e-7)
        return (m - m.mean(2, keepdim=True)) * .3


class Segmenter(nn.Module):
    def __init__(s):
        super().__init__()
        s.front = Front()
        s.conv = nn.Conv1d(40, 64, KERNEL, stride=STRIDE)
        s.lstm = nn.LSTM(64, HIDDEN, num_layers=2, bidirectional=True, batch_first=True, dropout=.1)
        s.fc = nn.Linear(2 * HIDDEN, 64)
        s.out = nn.Linear(64, len(CLASSES))

    def seq(s, f):                           # [N,40,frames] -> log-probabilities [N,FRAMES,7]
        h, _ = s.lstm(F.relu(s.conv(f)).transpose(1, 2))
        return F.log_softmax(s.out(F.leaky_relu(s.fc(h))), 2)

    def forward(s, x):
        return s.seq(s.front(x))


def piece(r, sp, voice):
    """One utterance or a part of one, with its activity by 10 ms."""
    x = sp.wav(int(r.choice(sp.spk[voice])))
    if r.random() < .45:
        a = int(r.uniform(0, .7) * len(x))
        x = x[a:a + int(r.uniform(.4, 3.5) * SR)]
    x = x * 10 ** (r.uniform(-5, 5) / 20)
    return x, activity(x, close=.3) if len(x) > 3200 else np.zeros(0, bool)


def mixture(r, sp):
    """A stretch of a conversation: (wave, activity of up to 3 voices [3, 10 ms])."""
    n = SAMPLES
    y, act = np.zeros(n, np.float32), np.zeros((SPEAKERS, n // 160), bool)
    count = int(r.choice([1, 2, 3], p=[.15, .45, .4]))
    voices = [sp.names[int(k)] for k in r.choice(len(sp.names), count, replace=False)]
    gains = 10 ** (r.uniform(-4, 4, count) / 20)
    pace = r.choice([0, 1, 2], p=[.35, .4, .25])        # few, some, many overlaps
    p, last = r.uniform(-3, 1.5), -1
    if r.random() < .04:
        p = SECONDS
    while p < SECONDS:
        others = [v for v in range(count) if v != last] or [0]
        v = int(r.choice(others)) if r.random() < .75 or last < 0 else last
        x, a = piece(r, sp, voices[v])
        if not len(a):
            continue
        put(y, act, v, x * gains[v], a, p)
        end = p + len(x) / SR
        if count > 1 and r.random() < (.1, .25, .45)[pace]:     # a word while the other speaks
            u = int(r.choice([w for w in range(count) if w != v]))
            x2, a2 = piece(r, sp, voices[u])
            k = int(r.uniform(.4, 1.8) * SR)
            if len(a2) > k // 160:
                put(y, act, u, x2[:k] * gains[u], a2[:k // 160], p + r.uniform(0, max(.1, end - p - .5)))
        last = v
        p = end + (-r.uniform(.2, 2.0) if r.random() < (.1, .3, .55)[pace] else r.exponential(.45))
    if r.random() < .35:
        y = convolve(y, room(r, r.uniform(.08, .4)))
    if r.random() < .4:
        y = y + normal(room_noise(r, n), .08 * 10 ** (-r.uniform(8, 30) / 20))
    y = y + (r.standard_normal(n) * .08 * 10 ** (-r.uniform(30, 70) / 20)).astype(np.float32)
    if r.random() < .3:
        y = tilt(y, r.uniform(-10, 10))
    q = r.random()
    if q < .12:
        y = band(y, 300, 3400)
    elif q < .25:
        y = band(y, 60, r.uniform(3000, 7000))
    y = y * 10 ** (r.uniform(-24, 3) / 20)
    return (y * min(1, .98 / (np.abs(y).max() + 1e-9))).astype(np.float32), act


def put(y, act, v, x, a, at):
    """Add a voice's sound from the time `at` on, which may lie before the window."""
    i = int(round(at * 100)) * 160
    if i < 0:
        x, a, i = x[-i:], a[-i // 160:], 0
    m = min(len(x), len(y) - i)
    if m <= 0:
        return
    y[i:i + m] += x[:m]
    a = a[:act.shape[1] - i // 160]
    act[v, i // 160:i // 160 + len(a)] |= a


def labels(act):
    """Activity by 10 ms -> by frame of the model; a third voice at once is left out."""
    at = ((np.arange(FRAMES) * SHIFT + FIELD // 2) // 160).clip(0, act.shape[1] - 1)
    return act[:, at].T


def build(r, sp, front, count, tag):
    X, L, t0 = np.zeros((count, 40, (SAMPLES - WINDOW) // HOP + 1), np.float16), np.zeros((count, FRAMES, SPEAKERS), bool), time.time()
    for i in range(count):
        y, act = mixture(r, sp)
        with torch.no_grad():
            X[i] = front(torch.from_numpy(y)[None, None])[0].half().numpy()
        L[i] = labels(act)
        if i % 200 == 199:
            print(tag, i + 1, f"{time.time()-t0:.0f}s", flush=True)
    return X, L


def cached(path, make):
    if not os.path.exists(path):
        X, L = make()
        np.save(path + ".x.npy", X); np.save(path + ".l.npy", L); open(path, "w").close()
    return np.load(path + ".x.npy", mmap_mode="r"), np.load(path + ".l.npy")


PERMS = list(itertools.permutations(range(SPEAKERS)))


def target(l):
    """[B,T,3] bool -> class numbers [B,T]; of three at once the first two count."""
    n = l.long().cumsum(2)
    l = l & (n <= 2)
    code = (l.long() * torch.tensor([1, 2, 4])).sum(2)
    table = torch.zeros(8, dtype=torch.long)
    for i, c in enumerate(CLASSES):
        table[sum(1 << s for s in c)] = i
    return table[code]


def pit(logp, l):
    """Cross entropy under the best order of the local speakers, and that order."""
    losses = torch.stack([F.nll_loss(logp.flatten(0, 1), target(l[:, :, list(p)]).flatten(), reduction="none").view(len(l), -1).mean(1) for p in PERMS])
    best = losses.min(0)
    return best.values.mean(), best.indices


def der(logp, l):
    """Diarization error rate by frame within windows (missed, false, confused), best order."""
    _, order = pit(logp, l)
    member = torch.tensor([[s in c for s in range(SPEAKERS)] for c in CLASSES])
    hyp = member[logp.argmax(2)]
    ref = torch.stack([l[i][:, list(PERMS[o])] for i, o in enumerate(order)])
    nr, nh, both = ref.sum(2), hyp.sum(2), (ref & hyp).sum(2)
    miss, false, conf = (nr - nh).clamp(min=0).sum(), (nh - nr).clamp(min=0).sum(), (torch.minimum(nr, nh) - both).sum()
    return [100 * v.item() / nr.sum().item() for v in (miss, false, conf)]


def main():
    sd, out, mixes, epochs, origin = sys.argv[1].split(","), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), (sys.argv[5:] + [None])[0]
    env = lambda k, d: float(os.environ.get(k, d))
    torch.manual_seed(1)
    m = Segmenter()
    if origin:
        m.load_state_dict(torch.load(origin))
    make = lambda q: lambda: build(np.random.default_rng(int(q)), Speech(sd, {"train"}), m.front, mixes, "train " + q)
    sets = [cached(f"{out}.{q}", make(q)) for q in os.environ.get("SEED", "1").split(",")]
    XH, LH = cached(f"{out}.held", lambda: build(np.random.default_rng(2), Speech(sd, {"held_base", "held_warp", "held_espeak"}), m.front, 160, "held"))
    if not epochs:
        return
    XH, LH = torch.from_numpy(np.array(XH)).float(), torch.from_numpy(LH)

    def report(head):
        m.eval()
        with torch.no_grad():
            p = torch.cat([m.seq(x) for x in XH.split(32)])
        missed, false, confused = der(p, LH)
        print(head, f"held-out: missed {missed:.1f}, false {false:.1f}, confused {confused:.1f} % loss {pit(p, LH)[0]:.4f}", flush=True)

    B, total = int(env("BATCH", 32)), sum(len(x) for x, _ in sets)
    where = [(k, i) for k, (x, _) in enumerate(sets) for i in range(len(x))]
    opt = torch.optim.AdamW(m.parameters(), 1e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, env("LR", 3e-3), total_steps=epochs * (total // B), pct_start=.15)
    t0 = time.time()
    for e in range(epochs):
        m.train()
        tot, perm = 0, torch.randperm(total).tolist()
        for b in range(total // B):
            at = [where[i] for i in perm[b * B:(b + 1) * B]]
            f = torch.from_numpy(np.stack([sets[k][0][i] for k, i in at])).float()
            loss, _ = pit(m.seq(f), torch.from_numpy(np.stack([sets[k][1][i] for k, i in at])))
            opt.zero_grad(); loss.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            opt.step(); sched.step(); tot += loss.item()
            if b % 20 == 19:
                print(f"  {b+1} loss {tot/(b+1):.4f} {time.time()-t0:.0f}s", flush=True)
        torch.save(m.state_dict(), out + ".pt")
        report(f"epoch {e} loss {tot/(total//B):.4f} {time.time()-t0:.0f}s")
    export(m, out)


def export(m, out):
    old = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}   # torch 2.5 and later
    torch.onnx.export(m.eval(), torch.zeros(2, 1, SAMPLES), out, input_names=["x"], output_names=["y"], opset_version=16,
                      dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, **old)
    g = onnx.load(out)
    onnx.helper.set_model_props(g, {k: str(v) for k, v in dict(
        model_type="pyannote-segmentation-3.0", num_speakers=SPEAKERS, powerset_max_classes=2, num_classes=len(CLASSES),
        sample_rate=SR, window_size=SAMPLES, receptive_field_size=FIELD, receptive_field_shift=SHIFT).items()})
    onnx.save(g, out)


if __name__ == "__main__":
    main()
