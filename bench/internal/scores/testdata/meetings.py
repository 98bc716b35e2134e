"""Print documented and random cases of meetings with the figures of MeetEval and jiwer, one JSON object a line.

meetings.py SEED CASES
"""

import json
import logging
import random
import sys
import warnings

import jiwer
import meeteval
from meeteval.wer.wer import cp, time_constrained

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
WORDS = "a bb ccc dddd over the lazy dog jumps é 你好 naïve".split()


def segments(rng, speakers):
    out = []
    for s in range(speakers):
        at = rng.choice([0.0, 0.0, rng.uniform(0, 30)])
        for _ in range(rng.randint(0, 4)):
            length = round(rng.choice([0.0, rng.uniform(0.1, 8)]), 2)
            words = " ".join(rng.choices(WORDS, k=rng.choice([0, 1, 1, 3, 5, 8])))
            start = round(at, 2)
            segment = {"session_id": "s", "speaker": f"S{s}", "start_time": start, "end_time": start + length}
            out.append({**segment, "words": words})
            at = max(0.0, at + length + rng.uniform(-2, 4))
    rng.shuffle(out)
    return out


def changed(rng, reference):
    """Return what a recognizer could make of the reference."""
    out = []
    names = [f"H{i}" for i in range(5)]
    rng.shuffle(names)
    confusion = rng.choice([0, 0.1, 0.5])
    shift = rng.choice([0, 0.3, 6])
    for s in reference:
        words = []
        for w in s["words"].split():
            kind = rng.random()
            if kind < 0.1:
                words.append(rng.choice(WORDS))
            elif kind < 0.2:
                words += [w, rng.choice(WORDS)]
            elif kind > 0.3:
                words.append(w)
        speaker = names[int(s["speaker"][1:]) % 5]
        if rng.random() < confusion:
            speaker = rng.choice(names)
        start = max(0.0, s["start_time"] + rng.uniform(-shift, shift))
        end = start + (s["end_time"] - s["start_time"])
        out.append({**s, "speaker": speaker, "words": " ".join(words), "start_time": start, "end_time": end})
    return out


# What the packages' own documentation shows: streams of segments of both sides.
EXAMPLES = [
    ([["a b c"], ["d e f"]], [["a b c"], ["d e f"]]),
    ([["a b"], ["c d"]], [["a b"], ["c d"], ["e f"]]),
    ([["a"], ["b"], ["c d"]], [["a"], ["b"]]),
    ([["a"], ["b"], ["c"]], [["b"], ["c"], ["d"], ["a"]]),
    ([["a b"]], [["z"], ["a e f"]]),
    ([["a b"], ["k"]], [[" "], ["a e f"]]),
    ([["Hello World"]], [["Hello World"]]),
    ([["a b", "c d", "e f"]], [["a b c d e f"]]),
    ([["a b", "c d", "e f"]], [["a b"], ["c d e f"]]),
    ([["a", "c d", "e"]], [["a c"], ["d e"]]),
    ([["a", "c d e"]], [["a c"], ["d e"]]),
    ([["a b", "c d"], ["e f"]], [["c d"], ["a b e f"]]),
    ([["a", "b"], ["c", "d"]], [["a", "c"], ["b", "d"]]),
    ([["a", "b"], ["c", "d"]], [["a b", "b c d"]]),
    ([["This is wikipedia"]], [["This wikipedia"]]),
    ([["hello world"]], [["hello duck"]]),
    ([["one two three"]], [["one three two four"]]),
    ([["the cat sat on the mat"]], [["the the cat sat mat"]]),
]


def example(streams, prefix):
    return [
        {"session_id": "s", "speaker": f"{prefix}{i}", "start_time": float(k), "end_time": k + 1.0, "words": words}
        for i, stream in enumerate(streams) for k, words in enumerate(stream)
    ]


def figures(er):
    out = [er.errors, er.length, er.substitutions, er.deletions, er.insertions]
    if hasattr(er, "scored_speaker"):
        out += [er.missed_speaker, er.falarm_speaker, er.scored_speaker]
    return out


def words(er):
    errors = er.substitutions + er.deletions + er.insertions
    return [errors, er.hits + er.substitutions + er.deletions, er.substitutions, er.deletions, er.insertions]


def drawn(rng):
    reference = segments(rng, rng.choice([0, 1, 2, 2, 3, 4, 5]))
    return reference, changed(rng, reference) if rng.random() < 0.8 else segments(rng, rng.randint(0, 4))


def case(reference, hypothesis):
    r, h = meeteval.io.SegLST(reference), meeteval.io.SegLST(hypothesis)
    out = {"reference": reference, "hypothesis": hypothesis, "want": {}}

    def put(name, f, *args, **more):
        try:
            out["want"][name] = figures(f(r, h, *args, **more))
        except Exception as e:  # what the package refuses is not compared
            out.setdefault("refused", {})[name] = repr(e)[:200]

    put("cp", cp.cp_word_error_rate)
    for collar in (0.5, 5):
        put(f"tcp{collar:g}", time_constrained.tcp_word_error_rate, collar=collar)
    a, b = (" ".join(s["words"] for s in x) for x in (reference, hypothesis))
    if a.strip():
        out["want"]["wer"] = words(jiwer.process_words(a, b))
        out["want"]["cer"] = words(jiwer.process_characters(a.strip(), b.strip()))
    return out


def main():
    rng = random.Random(int(sys.argv[1]))
    cases = [(example(r, "R"), example(h, "H")) for r, h in EXAMPLES]
    cases += [drawn(rng) for _ in range(int(sys.argv[2]))]
    for reference, hypothesis in cases:
        print(json.dumps(case(reference, hypothesis), ensure_ascii=False))


main()
