"""The word language model of demo-ctc, from the grammars without the sentences held out for evaluation.
Each n-gram's frequency is mixed with the shorter one's probability (F. Jelinek and R. Mercer, "Interpolated estimation
of Markov source parameters from sparse data", 1980); then n-grams that change the entropy by less than the
threshold are removed (A. Stolcke, "Entropy-based pruning of backoff language models", 1998). Words are formed as in
asr/onnx."""

import collections
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .texts import LANGS, Corpus

Gram = tuple[str, ...]
ORDER, MIX = 3, 0.1
SHARES = dict(en=10, es=4, fr=4, pt=4, de=4, zh=4)


@dataclass(frozen=True)
class Settings:
    """config/lm.toml describes them."""

    out: str
    sentences: int
    threshold: float
    seed: int


def sentences(text: str) -> Iterator[list[str]]:
    """The words of each sentence in a text: lower case, only apostrophes and hyphens as
    punctuation, every Chinese character a word."""
    for s in re.split(r"[.?!。？！]", text.lower()):
        words = re.findall(r"[\u3040-\u9fff]|[^\W_\u3040-\u9fff][^\W_\u3040-\u9fff'-]*(?:['-][^\W_\u3040-\u9fff]+)*", s)
        if words:
            yield ["<s>", *words, "</s>"]


def count(n: int, seed: int) -> list[collections.Counter]:
    """Counts of the n-grams, by length."""
    counts = [collections.Counter() for _ in range(ORDER + 1)]
    for lang in LANGS:
        corpus = Corpus(lang, seed, fixed=1)
        for _ in range(n * SHARES[lang] // sum(SHARES.values())):
            for s in sentences(corpus.one()):
                for i in range(1, len(s)):
                    for k in range(1, min(ORDER, i + 1) + 1):
                        counts[k][tuple(s[i - k + 1 : i + 1])] += 1
    return counts


def probabilities(counts: list[collections.Counter]) -> tuple[dict[Gram, float], collections.Counter]:
    """Probability of each n-gram's last word after the others, and the count of the others."""
    total = collections.Counter()
    for c in counts:
        for g, n in c.items():
            total[g[:-1]] += n
    p = {}
    for c in counts:
        for g, n in c.items():
            p[g] = n / total[g[:-1]] if len(g) == 1 else (1 - MIX) * n / total[g[:-1]] + MIX * p[g[1:]]
    return p, total


def backoffs(p: dict[Gram, float]) -> dict[Gram, float]:
    """Each context's probability of words it does not list, divided by the shorter context's."""
    left, below = collections.defaultdict(lambda: 1.0), collections.defaultdict(lambda: 1.0)
    for g, x in p.items():
        if len(g) > 1:
            left[g[:-1]] -= x
            below[g[:-1]] -= p[g[1:]]
    return {h: max(left[h], 1e-7) / max(below[h], 1e-7) for h in left}


def prune(p: dict[Gram, float], total: collections.Counter, threshold: float) -> None:
    for k in range(ORDER, 1, -1):
        back = backoffs(p)
        needed = {x for g in p if len(g) == k + 1 for x in (g[:-1], g[1:])}
        for g in [g for g in p if len(g) == k and g not in needed]:
            h = g[:-1]
            if total[h] / total[()] * p[g] * math.log(p[g] / (back[h] * p[g[1:]])) < threshold:
                del p[g]


def write(p: dict[Gram, float], out: str) -> None:
    back = backoffs(p)
    p = {**p, ("<s>",): 1e-9, ("<unk>",): 1e-7}
    grams = [sorted(g for g in p if len(g) == k) for k in range(1, ORDER + 1)]
    with open(out, "w", encoding="utf-8") as f:
        f.write("\\data\\\n" + "".join(f"ngram {k}={len(g)}\n" for k, g in enumerate(grams, 1)))
        for k, gs in enumerate(grams, 1):
            f.write(f"\n\\{k}-grams:\n")
            for g in gs:
                b = math.log10(back.get(g, 1))
                f.write(f"{math.log10(p[g]):.1f}\t{' '.join(g)}" + (f"\t{b:.1f}" if abs(b) >= 0.05 else "") + "\n")
        f.write("\n\\end\\\n")
    print("n-grams by length:", *map(len, grams))


def run(s: Settings) -> None:
    """Counts, prunes and writes the model."""
    p, total = probabilities(count(s.sentences, s.seed))
    prune(p, total, s.threshold)
    write(p, s.out)
