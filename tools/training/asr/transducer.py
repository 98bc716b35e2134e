"""Two English transducers that share demo-ctc's encoder: icefall's RNN-T with at most one token a frame, and NeMo's
TDT.  They serve to measure the searches and are not embedded."""

import itertools
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from .ctc import CTC, Block
from .data import DTYPE, Course, Pool, fbank, loader, slaney_mel, specaug
from .optim import AdamW32
from .score import wer_counts
from .vocab import Tok

STAYS = 5  # TDT's durations: 0 to 4 frames; 0 is never taught
CONTEXT = 2  # tokens that the prediction network sees
NEVER = -1e30
REST = 12.0  # first bonus of the blank in every second frame, because demo-ctc has half as many frames
AGAIN = -8.0  # first penalty of repeating the last token, because demo-ctc returns a token in several frames
HANN400 = torch.hann_window(400, periodic=False)
MELN = torch.tensor(slaney_mel(80, 512))


@dataclass(frozen=True)
class Settings(Course):
    """config/transducer.toml describes them."""

    pieces: int
    mel: float
    kept: int
    again: int


class Pieces(Tok):
    """The first `count` pieces of ASCII, numbered from 1 in the network, where 0 is the blank."""

    def __init__(self, count: int):
        self.count = count
        super().__init__()

    def load(self) -> list[str]:
        """A part of the pieces written by vocab.train."""
        return [p for p in super().load() if p.isascii()][: self.count]


def nemo_mel(x: torch.Tensor) -> torch.Tensor:
    """x [B,N] in [-1,1] -> [B,N//160,80], NeMo's log-mel without normalization."""
    y = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1)
    frames = F.pad(y, (200, 200)).unfold(1, 400, 160)[:, : x.shape[1] // 160]
    p = torch.fft.rfft(frames * HANN400, 512).abs().pow(2)
    return (p @ MELN.T + 2.0**-24).log()


class Transducer(nn.Module):
    """The encoder gives scores of tokens 25 times a second, from demo-ctc's layers at 40 ms and at
    80 ms, which do not change, and one more block. The prediction network sees two tokens. A joiner
    adds the scores of both networks. RNN-T and TDT share all but the last layers."""

    def __init__(s, ctc: CTC, V: int, d: int = 256):
        super().__init__()
        s.ctc, s.V, s.blank = ctc, V, 0
        s.adapt = nn.Conv1d(80, 80, 3, padding=1)
        s.nl, s.low, s.block = nn.LayerNorm(d), nn.Linear(d, d), Block(d, 4, 2 * d)
        s.emb, s.now, s.before = nn.Embedding(V, d), nn.Linear(d, d), nn.Linear(d, d)
        s.rest = nn.Parameter(torch.tensor(REST))
        s.again = nn.Parameter(F.pad(torch.full((V - 1,), AGAIN), (1, 0)))
        s.heard = nn.ModuleDict({"rnnt": nn.Linear(d, V), "tdt": nn.Linear(d, V + STAYS)})
        s.told = nn.ModuleDict({"rnnt": nn.Linear(d, V), "tdt": nn.Linear(d, V + STAYS)})

    def begin(s, tokens: list[int]) -> None:
        """Initializes with the scores of demo-ctc; tokens has demo-ctc's token for each of the vocabulary."""
        for last in s.low, s.block.conv.b, s.block.o, s.block.f2:
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
        for k in s.heard:
            nn.init.zeros_(s.told[k].weight)
            nn.init.zeros_(s.told[k].bias)
            nn.init.zeros_(s.heard[k].weight[s.V :])
            nn.init.zeros_(s.heard[k].bias[s.V :])
            s.heard[k].weight.data[: s.V] = s.ctc.head.weight.data[tokens]
            s.heard[k].bias.data[: s.V] = s.ctc.head.bias.data[tokens]
        s.heard["tdt"].bias.data[s.V + 1] = 2.0  # one frame

    def frames(s, x: torch.Tensor, x_lens: torch.Tensor, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
        """The scores of the frames, and the number of frames."""
        low, lens, high, _ = s.ctc.encode(x, x_lens)
        return s.scores(low, high, lens, kind), lens

    def scores(s, low: torch.Tensor, high: torch.Tensor, lens: torch.Tensor, kind: str) -> torch.Tensor:
        """Scores of the frames, from demo-ctc's layers at 40 ms and at 80 ms."""
        B, T, D = low.shape
        high = s.ctc.ln(high).unsqueeze(2).expand(-1, -1, 2, -1).reshape(B, -1, D)[:, :T]
        there = torch.arange(T)[None] < lens[:, None]
        keep, bias = there.unsqueeze(2).to(low.dtype), (~there)[:, None, None, :].to(low.dtype) * -1e4
        z = s.heard[kind](s.block(high + s.low(s.nl(low)), keep, bias)).float()
        rest = (torch.arange(T) % 2).unsqueeze(1) * (torch.arange(z.shape[2]) == s.blank).unsqueeze(0)
        return z + rest.float() * s.rest.float()

    def embed(s, y: torch.Tensor) -> torch.Tensor:
        """The tokens' embeddings; zeros for a number below 0, which precedes the text."""
        return s.emb(y.clamp(min=0)) * (y >= 0).unsqueeze(-1).to(s.emb.weight.dtype)

    def predict(s, before: torch.Tensor, last: torch.Tensor, kind: str) -> torch.Tensor:
        """Scores after the token last; before is the embedding of the token before it."""
        z = s.told[kind](F.silu(s.before(before) + s.now(s.embed(last)))).float()
        same = last.unsqueeze(-1) == torch.arange(s.V)
        return z + F.pad(same.float() * s.again.float(), (0, z.shape[-1] - s.V))


def adapter(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights of a convolution that converts NeMo's features to Kaldi's: least squares over the sound."""
    a, b = F.pad(nemo_mel(x).transpose(1, 2), (1, 1)).unfold(2, 3, 1), fbank(x)
    n = min(a.shape[2], b.shape[1])
    a, b = a[:, :, 1 : n - 1].permute(0, 2, 1, 3).reshape(-1, 240), b[:, 1 : n - 1].reshape(-1, 80)
    a = torch.cat([a, torch.ones(len(a), 1)], 1).double()
    w = torch.linalg.solve(a.T @ a + 1e-2 * torch.eye(241), a.T @ b.double()).float()
    return w[:240].T.reshape(80, 80, 3).contiguous(), w[240].contiguous()


def transducer_loss(said, blank, stays, lens: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """-log P of each text.  said [B,T,U] and blank [B,T,U+1]: log probabilities of the next token and of none;
    stays [B,T,U+1,D]: of lasting 1 to D frames. A stay may end after the last frame."""
    B, T, U1 = blank.shape
    D = stays.shape[3]
    alpha = F.pad(torch.zeros(B, 1), (0, U1 - 1), value=NEVER)
    silent = (blank.unsqueeze(3) + stays).unbind(1)
    spoken = (said.unsqueeze(3) + stays[:, :, :-1]).unbind(1)
    outs = []
    for t in range(T):
        if t:
            alpha = torch.stack([outs[t - d].select(2, d - 1) for d in range(1, min(D, t) + 1)]).logsumexp(0)
        here = alpha.unsqueeze(2)
        outs.append(torch.logaddexp(silent[t] + here, F.pad(spoken[t] + here[:, :-1], (0, 0, 1, 0), value=NEVER)))
    ends = torch.stack(outs, 1)[torch.arange(B), :, counts]  # B, T, D
    t, d = torch.arange(T)[None, :, None], torch.arange(1, D + 1)[None, None]
    n = lens[:, None, None]
    return -ends.masked_fill((t >= n) | (t + d < n), NEVER).flatten(1).logsumexp(1)


@dataclass(frozen=True)
class Batch:
    """demo-ctc's outputs for recordings at 40 ms and at 80 ms, their lengths at 40 ms, and their texts' tokens."""

    low: torch.Tensor
    high: torch.Tensor
    lens: torch.Tensor
    texts: list[list[int]]


def batches(s: Settings, net: Transducer, tok: Pieces) -> Iterator[Batch]:
    """New batches until there are `kept`; then every `again`-th is new and replaces another, and
    the rest are reused, because demo-ctc takes most of the time."""
    ld, rng, kept = loader(s, s.seconds, s.seed, s.nonspeech), np.random.RandomState(s.seed), []
    for n in itertools.count():
        if len(kept) == s.kept and n % s.again:
            yield kept[rng.randint(s.kept)]
            continue
        x, lens, _, sents = next(ld)
        with torch.no_grad():
            if rng.rand() < s.mel:
                f, lens = net.adapt(nemo_mel(x).transpose(1, 2)).transpose(1, 2), torch.tensor([k // 160 for k in lens])
            else:
                f, lens = fbank(x), torch.tensor([(k + 80) // 160 for k in lens])
            f = specaug(f, rng, 1, 2, -9.0, s.augment)
            low, lens, high, _ = net.ctc.encode(f, lens.clamp(max=f.shape[1]))
        b = Batch(low, high, lens, [[i + 1 for x in said for i in tok.enc(x[2], "en")] for said in sents])
        if len(kept) < s.kept:
            kept.append(b)
        else:
            kept[rng.randint(s.kept)] = b
        yield b


def batch_loss(net: Transducer, batch: Batch, kind: str) -> torch.Tensor:
    """The loss per token."""
    counts = torch.tensor([len(t) for t in batch.texts])
    said = torch.zeros(len(counts), int(counts.max()), dtype=torch.long)
    for row, t in zip(said, batch.texts):
        row[: len(t)] = torch.tensor(t, dtype=torch.long)
    last = F.pad(said, (1, 0))
    heard = net.scores(batch.low, batch.high, batch.lens, kind)
    told = net.predict(net.embed(F.pad(last[:, :-1], (1, 0), value=-1)), last, kind)
    a, b = heard[..., : net.V], told[..., : net.V]
    top_a, top_b = a.detach().amax(2, keepdim=True), b.detach().amax(2, keepdim=True)
    sums = torch.bmm((a - top_a).exp().to(DTYPE), (b - top_b).exp().transpose(1, 2).to(DTYPE)).float()
    norm = sums.clamp(min=1e-30).log() + top_a + top_b.transpose(1, 2)  # B, T, U+1
    T = a.shape[1]
    next_heard = a.gather(2, said[:, None].expand(-1, T, -1))
    next_told = b[:, :-1].gather(2, said[..., None])[:, None, :, 0]
    if kind == "tdt":
        stays = F.log_softmax(heard[:, :, None, net.V :] + told[:, None, :, net.V :], -1)[..., 1:]
    else:
        stays = torch.zeros(*norm.shape, 1)
    blank = a[..., :1] + b[:, None, :, 0] - norm
    loss = transducer_loss(next_heard + next_told - norm[:, :, :-1], blank, stays, batch.lens, counts)
    return loss[loss < -NEVER / 2].sum() / counts.sum().clamp(min=1)


@torch.no_grad()
def greedy(net: Transducer, x: torch.Tensor, kind: str) -> list[int]:
    """The best token of each frame."""
    heard, _ = net.frames(x, torch.tensor([x.shape[1]]), kind)
    before, last, out, t = torch.tensor([-1]), torch.tensor([0]), [], 0
    told = net.predict(net.embed(before), last, kind)
    while t < heard.shape[1]:
        z = (heard[:, t] + told)[0]
        k = int(z[: net.V].argmax())
        t += max(1, int(z[net.V :].argmax())) if kind == "tdt" else 1
        if k:
            before, last = last, torch.tensor([k])
            out.append(k)
            told = net.predict(net.embed(before), last, kind)
    return out


def evaluate(net: Transducer, tok: Pieces, pool: Pool, most: int, verbose: float = 0) -> dict[str, float]:
    """Word errors in % of RNN-T, of TDT, and of TDT on NeMo's features."""
    r, wrong, words = random.Random(1), [0, 0, 0], 0
    for d in r.sample(pool.items, min(len(pool.items), most)):
        x = torch.from_numpy(np.pad(pool.wav(d), (3200, 4800)))[None]
        f = fbank(x)
        m = net.adapt(nemo_mel(x).transpose(1, 2)).transpose(1, 2)
        texts = [tok.dec([k - 1 for k in greedy(net, f, kind)]) for f, kind in ((f, "rnnt"), (f, "tdt"), (m, "tdt"))]
        for i, h in enumerate(texts):
            c = wer_counts(d["text"], h)
            wrong[i] += c[0]
        words += c[1]
        if r.random() < verbose:
            print("   ", d["voice"], "|", d["text"], "|", " | ".join(texts))
    return {k: round(100 * e / words, 1) for k, e in zip(("rnnt", "tdt", "mel"), wrong)}


def start(s: Settings, tok: Pieces) -> Transducer:
    """A transducer from the checkpoint of demo-ctc, or from a transducer's for further training."""
    every = Tok()
    net = Transducer(CTC(len(every.pieces) + 1), len(tok.pieces) + 1)
    origin = {k: v.float() for k, v in torch.load(s.origin).items()}
    if "emb.weight" in origin:
        net.load_state_dict(origin)
    else:
        net.ctc.load_state_dict(origin)
        net.begin([0] + [every.rank[p] + 1 for p in tok.pieces])
        w, b = adapter(next(loader(s, s.seconds, s.seed, s.nonspeech))[0])
        net.adapt.weight.data.copy_(w)
        net.adapt.bias.data.copy_(b)
    mean, istd = net.ctc.mean.clone(), net.ctc.istd.clone()
    net.to(DTYPE)
    net.ctc.mean, net.ctc.istd = mean, istd
    net.adapt.float()
    for part in net.adapt, net.ctc:
        part.requires_grad_(False)
    return net


def save(net: Transducer, learned: dict[str, torch.Tensor], out: str) -> None:
    """The checkpoint."""
    torch.save(net.state_dict() | {n: m.half() for n, m in learned.items()}, out)


def run(s: Settings) -> list[float]:
    """Trains the transducers alternately; returns the loss of every step."""
    torch.manual_seed(s.seed)
    torch.set_num_threads(s.threads)
    tok = Pieces(s.pieces)
    net = start(s, tok)
    learning = {n: p for n, p in net.named_parameters() if p.requires_grad}
    opt, test = AdamW32(learning.values(), wd=0.02), Pool(s.dev)
    t0, losses = time.time(), []
    for step, batch in enumerate(itertools.islice(batches(s, net, tok), s.steps)):
        loss = batch_loss(net, batch, ("rnnt", "tdt")[step % 2])
        loss.backward()
        losses.append(loss.item())
        opt.step(
            min(1, (step + 1) / 60)
            * (s.rate_end + (s.rate - s.rate_end) * 0.5 * (1 + math.cos(math.pi * step / s.steps))),
            2.0,
        )
        done = step + 1
        if done % 50 == 0:
            rnnt, tdt = np.mean(losses[-50::2]), np.mean(losses[-49::2])
            print(f"{time.time() - t0:6.0f}s step {done} rnnt {rnnt:.3f} tdt {tdt:.3f}", flush=True)
            save(net, dict(zip(learning, opt.m)), s.out)
        if done % 500 == 0 or done == s.steps:
            print("WER", evaluate(net, tok, test, 40, 0.1), flush=True)
    save(net, dict(zip(learning, opt.m)), s.out)
    return losses
