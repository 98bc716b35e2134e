"""The border network of package align: the start of a word relative to the time of its first token.

It is trained on sets of go run -C tools ./wordset for which `go test -tags training ./align` has
written a dump: NAME.fb holds 24 bands of every 10 ms, dump.jsonl the times of the tokens.
"""

import difflib
import json
import re
import unicodedata
from dataclasses import dataclass

import numpy as np

LO, HI = -56, 18  # the candidate places, in steps of 10 ms from the first token's time
OFFSETS = np.arange(LO, HI + 1)
POOL = [
    (-16, -11),
    (-11, -7),
    (-7, -5),
    (-5, -4),
    (-4, -3),
    (-3, -2),
    (-2, -1),
    (-1, 0),
    (0, 1),
    (1, 2),
    (2, 3),
    (3, 4),
    (4, 6),
    (6, 10),
    (10, 16),
]  # stretches of time around a place whose bands are averaged
BANDS, LETTERS, HIDDEN = 24, 29, (48, 24)


@dataclass(frozen=True)
class Settings:
    """config/border.toml describes them."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    out: str
    seed: int
    epochs: int
    batch: int
    rate: float


@dataclass
class Words:
    """Bands around each word's places, the letters at its border, its true place, and the time since the word
    before."""

    bands: np.ndarray
    letters: np.ndarray
    place: np.ndarray
    since: np.ndarray
    outside: int

    def part(self, k: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The words k."""
        return self.bands[k], self.letters[k], self.place[k], self.since[k]


def pairs(said: dict, heard: dict) -> list[tuple[int, int]]:
    """Indices of the correctly recognized words of a recording."""
    key = lambda s: re.sub(r"[^\w']", "", s.lower())
    m = difflib.SequenceMatcher(
        None, [key(w["word"]) for w in said["words"]], [key(w["Text"]) for w in heard["words"]], autojunk=False
    )
    return [(i + k, j + k) for i, j, n in m.get_matching_blocks() for k in range(n)]


def letter(c: str) -> int:
    """1 to 26 for a letter, 0 for anything else."""
    c = unicodedata.normalize("NFD", c.lower())[0]
    return ord(c) - 96 if "a" <= c <= "z" else 0


def border_letters(before: str, word: str) -> list[int]:
    """The last two letters before a border and the first two after it."""
    before, word = ("".join(c for c in w if c.isalnum()) for w in (before, word))
    return [
        letter(before[-2]) if len(before) > 1 else 27,
        letter(before[-1]) if before else 28,
        letter(word[0]),
        letter(word[1]) if len(word) > 1 else 27,
    ]


def summed(path: str, speech: list[list[float]]) -> np.ndarray:
    """Running sums of the bands, centered on the mean of the speech and clipped, with 60 more steps on both sides."""
    fb = np.fromfile(path, dtype="<f4").reshape(-1, BANDS)
    k = np.zeros(len(fb), bool)
    for a, b in speech:
        k[int(round(a * 100)) : int(round(b * 100))] = True
    fb = np.clip((fb - fb[k].mean(0)) / 3.0, -4, 4)
    return np.concatenate([np.zeros((1, BANDS)), np.cumsum(np.pad(fb, ((60, 60), (0, 0)), mode="edge"), 0)])


def load(folders: tuple[str, ...]) -> Words:
    """The correctly recognized words of the sets."""
    X, L, Y, P, outside = [], [], [], [], 0
    for d in folders:
        with open(d + "/manifest.jsonl") as manifest, open(d + "/dump.jsonl") as dump:
            recordings = [(json.loads(a), json.loads(b)) for a, b in zip(manifest, dump)]
        for said, heard in recordings:
            try:
                cum = summed(f"{d}/{said['file']}.fb", heard["speech"])
            except FileNotFoundError:
                continue
            ws = heard["words"]
            for i, j in pairs(said, heard):
                T, y = int(round(ws[j]["First"] * 100)), said["words"][i]["start"] * 100
                b = np.clip(np.arange(T + LO, T + HI + 1) + 60, 20, len(cum) - 21)
                outside += y < T + LO - 0.5 or y > T + HI + 0.5
                X.append(np.concatenate([(cum[b + q] - cum[b + p]) / (q - p) for p, q in POOL], 1).astype(np.float32))
                L.append(border_letters(ws[j - 1]["Text"] if j > 0 else "", ws[j]["Text"]))
                gap = 99 if ws[j]["Fresh"] else T - int(round(ws[j - 1]["Last"] * 100))
                Y.append(y - T)
                P.append(60 if gap == 99 else min(gap, 59))
    return Words(np.array(X), np.array(L), np.array(Y), np.array(P), outside)


def softmax(s: np.ndarray) -> np.ndarray:
    """Probabilities of the rows."""
    e = np.exp(s - s.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


class Net:
    """Two hidden layers over the bands and letters; the place itself and the time since the word before have
    separate weights."""

    def __init__(self, rng: np.random.Generator, features: int):
        h1, h2 = HIDDEN
        W1 = rng.normal(0, 1 / np.sqrt(features), (features, h1)).astype("f4")
        WL = rng.normal(0, 0.1, (4, LETTERS, h1)).astype("f4")
        W2 = rng.normal(0, 1 / np.sqrt(h1), (h1, h2)).astype("f4")
        w3 = rng.normal(0, 1 / np.sqrt(h2), h2).astype("f4")
        self.params = [
            W1,
            WL,
            np.zeros(h1, "f4"),
            W2,
            np.zeros(h2, "f4"),
            w3,
            np.zeros((2, len(OFFSETS)), "f4"),
            np.zeros(121, "f4"),
        ]

    def forward(self, X: np.ndarray, L: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns the values needed for the gradient, and the scores of every place."""
        W1, WL, b1, W2, b2, w3, u, v = self.params
        h = X @ W1 + b1 + sum(WL[k][L[:, k]] for k in range(4))[:, None, :]
        a = np.maximum(h, 0)
        h2 = a @ W2 + b2
        a2 = np.maximum(h2, 0)
        vi = np.clip(OFFSETS[None, :] + P[:, None], -60, 60) + 60
        return h, a, h2, a2, vi, a2 @ w3 + u[(P >= 60).astype(int)] + v[vi]

    def gradient(self, X: np.ndarray, L: np.ndarray, Y: np.ndarray, P: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """The loss against places with a spread of 13 ms, and its gradient by parameter."""
        W1, WL, _, W2, _, w3, u, v = self.params
        h, a, h2, a2, vi, s = self.forward(X, L, P)
        q = softmax(s)
        t = np.exp(-0.5 * ((OFFSETS[None] - Y[:, None]) / 1.3) ** 2)
        t /= t.sum(1, keepdims=True) + 1e-9
        g = (q - t) / len(X)
        gw3 = np.einsum("bn,bnh->h", g, a2)
        g2 = g[:, :, None] * w3 * (h2 > 0)
        gW2, gb2 = np.einsum("bnh,bnk->hk", a, g2), g2.sum((0, 1))
        g1 = (g2 @ W2.T) * (h > 0)
        gW1, gb1, gl = X.reshape(-1, X.shape[2]).T @ g1.reshape(-1, W1.shape[1]), g1.sum((0, 1)), g1.sum(1)
        gWL, gu, gv = np.zeros_like(WL), np.zeros_like(u), np.zeros_like(v)
        for z in range(4):
            np.add.at(gWL[z], L[:, z], gl)
        np.add.at(gu, (P >= 60).astype(int), g)
        np.add.at(gv, vi, g)
        return -(t * np.log(q + 1e-9)).sum() / len(X), [gW1, gWL, gb1, gW2, gb2, gw3, gu, gv]

    def report(self, words: Words, name: str) -> None:
        """Prints the distances of the likeliest and the median place from the true one."""
        s = np.concatenate(
            [
                self.forward(*(words.part(slice(i, i + 256))[k] for k in (0, 1, 3)))[-1]
                for i in range(0, len(words.place), 256)
            ]
        )
        q = softmax(s)
        far = lambda k: abs(OFFSETS[k] - words.place) * 10
        e, e2 = far(q.argmax(1)), far((q.cumsum(1) >= 0.5).argmax(1))
        print(
            name,
            f"argmax {e.mean():.1f} ms {100 * (e <= 50).mean():.1f}% | median {e2.mean():.1f} ms "
            f"{100 * (e2 <= 50).mean():.1f}%",
            flush=True,
        )


def run(s: Settings) -> list[float]:
    """Trains the network with Adam and writes its numbers; returns the loss of every step."""
    train, test = load(s.train), load(s.test)
    print(train.bands.shape, test.bands.shape, "out of range", train.outside, test.outside)
    rng = np.random.default_rng(s.seed)
    net = Net(rng, train.bands.shape[2])
    mo, vo = ([np.zeros_like(q) for q in net.params] for _ in range(2))
    N, losses = len(train.place), []
    total = s.epochs * N // s.batch
    for epoch in range(s.epochs):
        order = rng.permutation(N)
        for i in range(0, N - s.batch + 1, s.batch):
            X, L, Y, P = train.part(order[i : i + s.batch])
            loss, grads = net.gradient(X + rng.normal(0, 0.1, (s.batch, 1, 1)).astype("f4"), L, Y, P)
            losses.append(float(loss))
            step = len(losses)
            lr = s.rate * min(1, step / 100) * (1 - step / (total + 1))
            for n, (p, g) in enumerate(zip(net.params, grads)):
                mo[n] = 0.9 * mo[n] + 0.1 * g
                vo[n] = 0.99 * vo[n] + 0.01 * g * g
                p -= (
                    lr
                    * (mo[n] / (1 - 0.9**step) / (np.sqrt(vo[n] / (1 - 0.99**step)) + 1e-8) + 2e-3 * p * (p.ndim > 1))
                ).astype("f4")
        print(epoch, f"loss {np.mean(losses[-(N // s.batch) :]):.3f}")
    net.report(test, "test")
    net.report(train, "train")
    np.concatenate([p.ravel() for p in net.params]).astype("<f4").tofile(s.out)
    return losses
