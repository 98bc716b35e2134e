"""Every stage runs two steps on made-up data and writes its output."""

import importlib
import importlib.util
import math
import os
import shutil
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

from ..__main__ import STAGES
from ..settings import FOLDER, load

NEEDS = ("numpy", "scipy", "torch", "onnx")
MISSING = [m for m in NEEDS if importlib.util.find_spec(m) is None]


class ConfigurationTest(unittest.TestCase):
    """The files in config/."""

    @unittest.skipIf(MISSING, f"Python has no {', '.join(MISSING)}: the stages cannot be imported")
    def test_rounds_have_every_setting(self) -> None:
        """Every round of every stage has every setting, and no other."""
        for stage, module in STAGES.items():
            kind = importlib.import_module(f"...{module}", __name__).Settings
            for name, table in tomllib.loads((FOLDER / f"{stage}.toml").read_text()).items():
                if isinstance(table, dict):
                    load(kind, stage, name)


@unittest.skipIf(MISSING, f"Python has no {', '.join(MISSING)}: no stage takes its two steps")
class StagesTest(unittest.TestCase):
    """Stages in a folder with tiny corpora."""

    @classmethod
    def setUpClass(cls) -> None:
        """Makes the corpora and changes to their folder."""
        from . import tiny

        cls.home, cls.folder = os.getcwd(), tempfile.mkdtemp()
        os.chdir(cls.folder)
        folder = Path(cls.folder)
        tiny.clips(folder / "data/b1", 12)
        tiny.clips(folder / "data/d1", 2)
        tiny.words(folder / "words", 4)
        tiny.words(folder / "words-test", 2)

    @classmethod
    def tearDownClass(cls) -> None:
        """Changes back and removes the corpora."""
        os.chdir(cls.home)
        shutil.rmtree(cls.folder)

    def steps(self, stage: str, round_name: str, *changes: str) -> list[float]:
        """Runs a round and returns its losses, which must be two different finite numbers."""
        module = importlib.import_module(f"...{STAGES[stage]}", __name__)
        losses = module.run(load(module.Settings, stage, round_name, changes))
        self.assertEqual(2, len(losses))
        self.assertTrue(all(map(math.isfinite, losses)), losses)
        self.assertNotEqual(*losses)
        return losses

    def inputs(self, path: str) -> list[str]:
        """The inputs of a well-formed ONNX file."""
        import onnx

        m = onnx.load(path)
        onnx.checker.check_model(m)
        return [i.name for i in m.graph.input]

    def test_border_network(self) -> None:
        """32 words in two batches."""
        import numpy as np

        self.steps("border", "border", 'train=["words"]', 'test=["words-test"]', "epochs=1", "batch=16")
        numbers = np.fromfile("border.f32", "<f4")
        self.assertEqual(24367, len(numbers))
        self.assertTrue(np.isfinite(numbers).all())

    def test_language_model(self) -> None:
        """The language model is a complete ARPA file of one to three words."""
        module = importlib.import_module("...asr.lm", __name__)
        module.run(load(module.Settings, "lm", "lm", ["out=lm.arpa", "sentences=2000"]))
        lines = Path("lm.arpa").read_text(encoding="utf-8").splitlines()
        self.assertEqual("\\data\\", lines[0])
        self.assertEqual("\\end\\", lines[-1])
        for k in 1, 2, 3:
            told = int(lines[k].removeprefix(f"ngram {k}="))
            at = lines.index(f"\\{k}-grams:")
            self.assertEqual("", lines[at + 1 + told], f"{k}-grams")
            self.assertNotIn("", lines[at + 1 : at + 1 + told])

    def test_ctc_and_whisper(self) -> None:
        """demo-ctc, and demo-whisper, which is trained on its outputs."""
        from ..asr import data, vocab
        from . import tiny

        sentences = [t for texts in tiny.TEXTS.values() for t in texts]
        pieces = sorted({c for t in sentences for c in t} | set(data.PHONES) | {" " + t[0] for t in sentences})
        Path("ck").mkdir()
        same = ['clips=["data/b1.jsonl"]', "steps=2", "seconds=10.0", "workers=0"]
        with (
            mock.patch.object(vocab.Tok, "load", lambda _: pieces),
            mock.patch.object(data.Phones, "raw", lambda _, text, lang: list(text.lower())),
        ):
            self.steps("ctc", "k0", *same, "out=ck/k1.pt")
            self.steps("whisper", "w0", *same)
            self.steps("whisper", "w2", *same, "origin=ck/w0.pt", "long_every=2", "long_seconds=40.0", "out=ck/w2.pt")
            self.steps("transducer", "r0", *same, 'dev=["data/d1.jsonl"]', "origin=ck/k1.pt", "pieces=30")
            self.files()
            self.transducers()

    def transducers(self) -> None:
        """The exported files of the transducers' checkpoint."""
        from ..asr import transducer_files

        transducer_files.main("ck/r0.pt", "transducers")
        for path, inputs in {
            "rnnt/encoder": ["x", "x_lens"],
            "rnnt/decoder": ["y"],
            "rnnt/joiner": ["encoder_out", "decoder_out"],
            "tdt/encoder": ["audio_signal", "length"],
            "tdt/decoder": ["targets", "target_length", "states", "cells"],
            "tdt/joiner": ["encoder_outputs", "decoder_outputs"],
        }.items():
            self.assertEqual(inputs, self.inputs(f"transducers/{path}.onnx"))
        for kind, blank in ("rnnt", 0), ("tdt", 30):
            lines = Path(f"transducers/{kind}/tokens.txt").read_text(encoding="utf-8").splitlines()
            self.assertEqual(31, len(lines))
            self.assertEqual(f"<blk> {blank}", lines[blank])

    def test_transducer_numbers(self) -> None:
        """NeMo's numbering of the tokens changes their names, not their scores."""
        import torch

        from ..asr import transducer_files
        from ..asr.ctc import CTC
        from ..asr.transducer import Transducer

        torch.manual_seed(6)
        net = Transducer(CTC(9), 7).eval()
        low, high, lens = torch.randn(1, 6, 256), torch.randn(1, 3, 256), torch.tensor([6])
        order = [1, 2, 3, 4, 5, 6, 0]
        last = torch.tensor([2])
        with torch.no_grad():
            heard = net.scores(low, high, lens, "tdt")
            told = net.predict(net.embed(torch.tensor([0])), last, "tdt")
            transducer_files.blank_last(net)
            order += range(7, heard.shape[2])
            self.assertTrue(torch.allclose(heard[..., order], net.scores(low, high, lens, "tdt")))
            predicted = net.predict(net.embed(torch.tensor([6])), last - 1, "tdt")
            self.assertTrue(torch.allclose(told[..., order], predicted))

    def test_transducer_loss(self) -> None:
        """The loss is the sum over all alignments, counted one by one."""
        import torch

        from ..asr.transducer import transducer_loss

        torch.manual_seed(5)
        for longest, lens, counts in (1, [5, 3], [2, 3]), (3, [5, 4], [2, 0]):
            said, blank = torch.randn(2, 5, 3), torch.randn(2, 5, 4)
            stays = torch.randn(2, 5, 4, longest)

            def ways(b: int, t: int, u: int) -> float:
                if t >= lens[b]:
                    return float(u == counts[b])
                total = 0.0
                for d in range(longest):
                    stay = stays[b, t, u, d].item()
                    total += math.exp(blank[b, t, u].item() + stay) * ways(b, t + d + 1, u)
                    if u < counts[b]:
                        total += math.exp(said[b, t, u].item() + stay) * ways(b, t + d + 1, u + 1)
                return total

            loss = transducer_loss(said, blank, stays, torch.tensor(lens), torch.tensor(counts))
            for b in range(2):
                self.assertAlmostEqual(-math.log(ways(b, 0, 0)), loss[b].item(), places=4)

    def test_made_up_names(self) -> None:
        """Names of the evaluation side and of the training side do not mix, and replace words."""
        import random

        from ..asr import texts

        r = random.Random(3)
        for held in False, True:
            for _ in range(50):
                self.assertEqual(held, texts.heldout(texts.made_up(r, held)))
        words = texts.put_names("Where is the station, please?", r).split()
        self.assertEqual(["is", "the"], words[1:3])
        self.assertEqual("?", words[4][-1])
        self.assertNotEqual("Where is the station, please?", " ".join(words))

    def files(self) -> None:
        """The exported files of the recognizers' checkpoints."""
        import onnx

        from ..asr import export

        export.ctc("ck/k1.pt", "./demo-ctc.onnx", "int8")
        self.assertEqual(["x", "x_lens"], self.inputs("demo-ctc.onnx"))
        kinds = [node.op_type for node in onnx.load("demo-ctc.onnx").graph.node]
        self.assertFalse({"Constant", "Concat", "Pow", "Squeeze", "Where"} & set(kinds), "sizes that are known")
        export.whisper("ck/w2.pt", "demo-whisper.bin", "q6")
        self.assertEqual(b"lmgg", Path("demo-whisper.bin").read_bytes()[:4])


if __name__ == "__main__":
    unittest.main()
