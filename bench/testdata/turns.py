"""Print random speaker turns with the figures of pyannote.metrics, one JSON object a line.

turns.py SEED CASES
"""

import json
import random
import sys
import warnings

from pyannote.core import Annotation, Segment
from pyannote.metrics.diarization import DiarizationErrorRate, JaccardErrorRate

warnings.simplefilter("ignore")


def turns(rng, speakers):
    out = []
    for s in range(speakers):
        at = round(rng.uniform(0, 20), 2)
        for _ in range(rng.randint(0, 6)):
            end = round(at + rng.uniform(0.1, 7), 2)
            out.append([at, end, f"S{s}"])
            at = end if rng.random() < 0.2 else round(end + rng.uniform(0, 6), 2)
    return out


def changed(rng, reference):
    out, free = [], {}
    for start, end, speaker in sorted(reference):
        name = "H" + (speaker[1:] if rng.random() < 0.8 else str(rng.randint(0, 4)))
        start, end = (round(max(0, t + rng.uniform(-0.6, 0.6)), 2) for t in (start, end))
        start = max(start, free.get(name, 0))
        if end > start and rng.random() < 0.9:
            out.append([start, end, name])
            free[name] = end
    return out


def annotation(list_):
    a = Annotation()
    for i, (start, end, speaker) in enumerate(list_):
        a[Segment(start, end), i] = speaker
    return a


def case(rng):
    reference = turns(rng, rng.choice([0, 1, 2, 2, 3, 5, 12]))
    hypothesis = changed(rng, reference) if rng.random() < 0.8 else turns(rng, rng.randint(0, 4))
    out = {"reference": reference, "hypothesis": hypothesis, "want": {}}
    for collar in (0, 0.25):
        for skip in (False, True):
            r, h = annotation(reference), annotation(hypothesis)
            how = {"collar": 2 * collar, "skip_overlap": skip}
            d = DiarizationErrorRate(**how)(r, h, detailed=True)
            out["want"][f"{collar:g} {skip}"] = [
                d["total"], d["missed detection"], d["false alarm"], d["confusion"],
                d["diarization error rate"], JaccardErrorRate(**how)(r, h),
            ]
    return out


def main():
    rng = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(json.dumps(case(rng)))


main()
