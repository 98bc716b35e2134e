"""Error rates of checkpoints on the development clips (synth.py … dev), by language, English voice and, for
demo-whisper, windows of several sentences up to 10 s.  Every second clip gets white noise at 18 dB.
usage: python3 -m training.asr.choose ctc|whisper CK …
       python3 -m training.asr.choose mix A@B@0.5 OUT
a checkpoint may be a mixture: A@B@0.5 weighs A by 0.5 and B by the rest"""

import collections
import random
import sys
from dataclasses import dataclass

import numpy as np
import torch

from ..settings import load as settings
from . import ctc, whisp
from .beam import prefix_beam
from .data import SR, Pool, fbank, logmel
from .score import wer_counts
from .texts import LANGS
from .vocab import Tok


@dataclass(frozen=True)
class Settings:
    """config/choose.toml describes them."""

    dev: tuple[str, ...]
    every: int
    threads: int
    window: float
    pause: float


def load(name):
    a = name.split("@")
    sd = {k: v.float() for k, v in torch.load(a[0]).items()}
    if len(a) == 1:
        return sd
    o, w = torch.load(a[1]), float(a[2])
    return {k: w * v + (1 - w) * o[k].float() for k, v in sd.items()}


def recogniser(kind, tok, sd):
    if kind == "ctc":
        net = ctc.CTC(len(tok.pieces) + 1)
        net.load_state_dict(sd)
        net.eval()

        def rec(x, lang):
            f = fbank(x)
            lp, _ = net(f, torch.tensor([f.shape[1]]))
            return tok.dec([k - 1 for k in prefix_beam(lp[0].tolist())])

        return rec
    net = whisp.Whisper(tok)
    assert not net.load_state_dict(sd, strict=False).missing_keys, "a checkpoint of another shape"
    net.eval()
    E = net.E()

    def rec(x, lang):
        torch.manual_seed(0)  # places of the padding frames
        enc, bias = net.encode(logmel(torch.nn.functional.pad(x, (0, -x.shape[1] % 320 + 320 * 40))), 0, 96)
        t = [net.SOT, net.LANG[lang], net.TR]
        while len(t) < 110 and t[-1] != net.EOT:
            t.append(int(net.decode(torch.tensor([t]), enc, E, None, bias)[0, -1].argmax()))
        return tok.dec([k for k in t if k < net.P])

    return rec


def recordings(kind, pool, s):
    """[(columns of the table, language, text, samples), …]"""
    r, out = np.random.RandomState(0), []
    for i, d in enumerate(pool.items[:: s.every]):
        x = np.pad(pool.wav(d), (3200, 4800))
        if i % 2:
            x = x + r.randn(len(x)).astype(np.float32) * np.sqrt((x**2).mean()) * 10 ** (-18 / 20)
        engine, voice = d["voice"].split(":")
        name = engine if engine == "espeak" else engine + ":" + voice.split("+")[0]
        out.append(([d["lang"]] + ([name] if d["lang"] == "en" else []), d["lang"], d["text"], x))
    rr = random.Random(5)
    for l in LANGS if kind == "whisper" else ():
        for _ in range(20 if l == "en" else 6):
            parts, texts, n = [], [], 0.0
            while True:
                d = pool.items[rr.choice(pool.bylang[l])]
                if n + d["n"] / SR > s.window:
                    break
                parts += [pool.wav(d), np.zeros(int(s.pause * SR), np.float32)]
                texts.append(d["text"])
                n += d["n"] / SR + s.pause
            if texts:
                x = np.concatenate(parts)
                out.append(
                    (
                        ["windows " + l],
                        l,
                        ("" if l == "zh" else " ").join(texts),
                        x + 1e-4 * r.randn(len(x)).astype(np.float32),
                    )
                )
    return out


@torch.no_grad()
def main(kind, names):
    s = settings(Settings, "choose", "choose")
    torch.set_num_threads(s.threads)
    tok, recs = Tok(), recordings(kind, Pool(s.dev), s)
    for name in names:
        rec, c = recogniser(kind, tok, load(name)), collections.defaultdict(lambda: [0, 0])
        for keys, lang, text, x in recs:
            e, n = wer_counts(text, rec(torch.from_numpy(x)[None], lang), lang == "zh")
            for k in keys:
                c[k][0] += e
                c[k][1] += n
        rate = {k: round(100 * e / n, 1) for k, (e, n) in sorted(c.items())}
        print(
            name,
            rate,
            "mean of languages",
            round(np.mean([rate[l] for l in LANGS]), 2),
            *(["windows", round(np.mean([rate["windows " + l] for l in LANGS]), 2)] if kind == "whisper" else []),
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1] == "mix":
        torch.save(load(sys.argv[2]), sys.argv[3])
    else:
        main(sys.argv[1], sys.argv[2:])
