"""Trains a finished demo-speaker further on real people.

Half of what it learns are names: real people with their warps (people.py), and synthetic voices as
before, by additive-angular-margin softmax. The other half is a teacher's judgment of real voices:
which of them are alike (the rows of both cosine matrices of a batch, as distributions), and the
teacher's vector, which a linear layer must guess from a crop of a second. Weights are averaged over
steps.
"""

import copy
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import numpy_helper

from ..onnxfile import export
from .corpus import Speech
from .embedder import Ecapa, Margin, evaluate, features, stretch


@dataclass(frozen=True)
class Settings:
    """config/distill.toml describes them."""

    origin: str
    people: str
    speech: tuple[str, ...]
    out: str
    minutes: float
    steps: int
    real: int
    synthetic: int
    rate: float
    crops: tuple[int, ...]
    over: float
    scale: float
    margin: float
    sharpness: float
    bfloat16: bool


class Real:
    """The corpus that people.py wrote. voices: the numbers of each voice's recordings; persons:
    the voices of each person, the own one first."""

    def __init__(self, folder: str):
        self.feats = np.memmap(f"{folder}/feats.f16", np.float16, "r").reshape(-1, 80)
        self.rows = json.load(open(f"{folder}/index.json"))
        count = 1 + max(r["vector"] for r in self.rows)
        t = torch.from_numpy(np.fromfile(f"{folder}/teacher.f32", "<f4").reshape(count, -1))
        self.teacher = F.normalize(t - t.mean(0))
        self.voices: dict[str, list[int]] = {}
        for i, r in enumerate(self.rows):
            self.voices.setdefault(r["voice"], []).append(i)
        self.names = sorted(self.voices)
        self.persons: dict[str, list[str]] = {}
        for name in self.names:
            self.persons.setdefault(name.rsplit("+", 1)[0], []).append(name)
        long = np.array([sum(self.frames(n) for n in v) for v in self.persons.values()], float) ** 0.35
        self.weights = long / long.sum()

    def frames(self, voice: str) -> int:
        """The length of a voice's recordings."""
        return sum(self.rows[i]["len"] for i in self.voices[voice])

    def feat(self, i: int) -> np.ndarray:
        """The features of recording i."""
        r = self.rows[i]
        return np.asarray(self.feats[r["off"] : r["off"] + r["len"]])

    def pairs(self, r: np.random.Generator, count: int) -> Iterator[tuple[str, int]]:
        """Two recordings each of `count` voices: of a person the own voice in a third of the cases."""
        persons = list(self.persons.values())
        for k in r.choice(len(persons), count, p=self.weights):
            own, voice = persons[k][0], persons[k][int(r.integers(len(persons[k])))]
            voice = own if r.random() < 0.35 else voice
            for _ in range(2):
                yield voice, int(r.choice(self.voices[voice]))


def weights(path: str) -> dict[str, torch.Tensor]:
    """The weights in demo-speaker's ONNX file (finish.py marks the float16 ones with _h)."""
    named = ((t.name.removesuffix("_h"), numpy_helper.to_array(t)) for t in onnx.load(path).graph.initializer)
    return {name: torch.from_numpy(np.array(a, np.float32)) for name, a in named}


def filled(r: np.random.Generator, f: np.ndarray, T: int) -> np.ndarray:
    """T frames of f, which is repeated if it is shorter."""
    return stretch(r, f if len(f) >= T else np.tile(f, (T // len(f) + 1, 1)), T)


def mixed(r: np.random.Generator, x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """x with another voice, softly throughout or about as loud for a moment."""
    n, a, db = len(x), 0, -r.uniform(8, 22)
    if r.random() < 0.5:
        n, db = int(r.uniform(0.1, 0.4) * n), -r.uniform(-3, 12)
        a = int(r.integers(0, len(x) - n))
    at = slice(a, a + n)
    x[at] = np.logaddexp(x[at], other[at] + db * math.log(10) / 10)
    return x


def blanked(r: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """A crop with its gain moving, its mean taken off, and a band or a moment blanked: each at times."""
    if r.random() < 0.2:
        gain = np.interp(np.arange(len(x)), np.linspace(0, len(x) - 1, 4), r.normal(0, 0.5, 4))
        x = x + gain[:, None].astype(np.float32)
    x = x - x.mean(0)
    if r.random() < 0.4:
        a = int(r.integers(0, 72))
        x[:, a : a + int(r.integers(2, 9))] = 0
    if r.random() < 0.2:
        a = int(r.integers(0, len(x) - 15))
        x[a : a + int(r.integers(3, 15))] = 0
    return x


class Batches:
    """Crops of real and synthetic voices, the numbers of their classes, and teacher's vectors."""

    def __init__(self, s: Settings, real: Real, synthetic: dict[str, np.ndarray]):
        self.s, self.real, self.synthetic = s, real, synthetic
        self.others = sorted(synthetic)
        self.number = {name: k for k, name in enumerate(real.names + self.others)}
        self.r = np.random.default_rng(4)

    def crop(self, f: np.ndarray, T: int) -> np.ndarray:
        """A crop as the network gets it."""
        r, x = self.r, filled(self.r, f, T)
        if r.random() < self.s.over:
            if r.random() < 0.7:
                other = self.real.feat(int(r.integers(len(self.real.rows))))
            else:
                other = self.synthetic[str(r.choice(self.others))]
            x = mixed(r, x, filled(r, other, T))
        return blanked(r, x)

    def some(self, name: str, T: int, count: int) -> np.ndarray:
        """Crops of one class."""
        pick = lambda: self.real.feat(int(self.r.choice(self.real.voices[name])))
        of = [pick() if name in self.real.voices else self.synthetic[name] for _ in range(count)]
        return np.stack([blanked(self.r, filled(self.r, f, T)) for f in of])

    def next(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Crops, their classes, and the teacher's vectors of the real ones, which come first."""
        T = int(self.r.choice(self.s.crops))
        real = list(self.real.pairs(self.r, self.s.real // 2))
        others = [str(n) for n in self.r.choice(self.others, self.s.synthetic)]
        x = [self.crop(self.real.feat(i), T) for _, i in real] + [self.crop(self.synthetic[n], T) for n in others]
        y = [self.number[n] for n in [v for v, _ in real] + others]
        t = self.real.teacher[[self.real.rows[i]["vector"] for _, i in real]]
        return torch.from_numpy(np.stack(x).astype(np.float32)), torch.tensor(y), t


def likeness(e: torch.Tensor, teacher: torch.Tensor, sharpness: float) -> torch.Tensor:
    """How far the network's judgment of who is alike is from the teacher's."""
    e, t = F.normalize(e), F.normalize(teacher)
    own = torch.eye(len(e), dtype=torch.bool)
    rows = [(m @ m.T * sharpness).masked_fill(own, -1e4) for m in (e, t)]
    return F.kl_div(F.log_softmax(rows[0], 1), F.softmax(rows[1], 1), reduction="batchmean")


class Learner:
    """The network with what it needs to learn only, and the average of its weights."""

    def __init__(self, s: Settings, batches: Batches):
        self.s, self.batches, self.losses = s, batches, []
        self.net, self.guess = Ecapa(), nn.Linear(192, batches.real.teacher.shape[1])
        self.net.load_state_dict(weights(s.origin), strict=False)
        self.average, self.head = copy.deepcopy(self.net), Margin(len(batches.number), s.scale)
        self.net.eval()
        with torch.no_grad():
            for name, k in batches.number.items():
                self.head.w[k] = F.normalize(self.net(torch.from_numpy(batches.some(name, 150, 4)))).mean(0)
        self.net.train()
        self.groups = [(self.net, 1.0), (self.head, 4.0), (self.guess, 2.0)]
        self.parameters = [p for m, _ in self.groups for p in m.parameters()]
        groups = [{"params": list(m.parameters())} for m, _ in self.groups]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=1e-3)

    def step(self, done: float) -> None:
        """One batch; done is the share of the training that is over."""
        s, k = self.s, len(self.losses)
        rate = s.rate * min(1, k / 100) * (0.5 * (1 + math.cos(math.pi * done)) + 0.005)
        for group, (_, times) in zip(self.optimizer.param_groups, self.groups):
            group["lr"] = rate * times
        x, y, teacher = self.batches.next()
        with torch.autocast("cpu", torch.bfloat16, enabled=s.bfloat16):
            e = self.net(x)
        e, n = e.float(), len(teacher)
        loss = self.head(e, y, s.margin * min(1, done / 0.3)) + likeness(e[:n], teacher, s.sharpness)
        loss = loss + 4 * (1 - F.cosine_similarity(self.guess(e[:n]), teacher)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 5.0)
        self.optimizer.step()
        self.losses.append(loss.item())
        keep = min(0.9985, 1 - 1 / (k / 3 + 2.3))
        with torch.no_grad():
            for a, b in zip(self.average.state_dict().values(), self.net.state_dict().values()):
                if a.dtype.is_floating_point:
                    a.mul_(keep).add_(b, alpha=1 - keep)


def run(s: Settings) -> list[float]:
    """Trains for s.minutes, or for s.steps if not 0; returns the loss of every step."""
    torch.set_num_threads(1)
    torch.manual_seed(4)
    held = {k: features(Speech(s.speech, {k}), 1, False) for k in ("held_base", "held_espeak")}
    learner = Learner(s, Batches(s, Real(s.people), features(Speech(s.speech, {"train"}))))
    start = last = time.time()
    while True:
        k, now = len(learner.losses), time.time()
        done = k / s.steps if s.steps else (now - start) / (60 * s.minutes)
        if done >= 1 or now - last > 240:
            last, net = now, learner.average.eval()
            embed = lambda x: net(torch.from_numpy(x)).detach().numpy()
            rates = {name: f"{100 * evaluate(embed, f, 1.5)[0][0]:.2f} %" for name, f in held.items() if f}
            print(f"{now - start:.0f} s, step {k}, loss {np.mean(learner.losses[-200:]):.3f}, EER {rates}", flush=True)
        if done >= 1:
            break
        learner.step(done)
    export(
        learner.average,
        (torch.zeros(2, 200, 80),),
        s.out,
        input_names=["feats"],
        output_names=["embs"],
        dynamic_axes={"feats": {0: "N", 1: "T"}, "embs": {0: "N"}},
    )
    return learner.losses
