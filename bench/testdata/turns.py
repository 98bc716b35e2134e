"""Print speaker turns with the figures of pyannote.metrics, one JSON object a line.

turns.py SEED CASES       random turns
turns.py FILE FOLDER [MD-EVAL]   hypotheses for recordings (recordings.jsonl), whose references are
                          FOLDER/RECORDING.rttm; also the figures of NIST's md-eval-22, whose path is MD-EVAL
"""

import json
import random
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

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
    return {"reference": reference, "hypothesis": hypothesis, "want": scores(reference, hypothesis)}


def ways():
    for collar in (0, 0.25):
        for skip in (False, True):
            yield f"{collar:g} {skip}", collar, skip


def scores(reference, hypothesis):
    want, r, h = {}, annotation(reference), annotation(hypothesis)
    for key, collar, skip in ways():
        how = {"collar": 2 * collar, "skip_overlap": skip}
        d = DiarizationErrorRate(**how)(r, h, detailed=True)
        want[key] = [
            d["total"], d["missed detection"], d["false alarm"], d["confusion"],
            d["diarization error rate"], JaccardErrorRate(**how)(r, h),
        ]
    return want


def rttm(turns_):
    return "".join(f"SPEAKER x 1 {s:.4f} {e - s:.4f} <NA> <NA> {who} <NA> <NA>\n" for s, e, who in turns_)


def md_eval(program, reference, hypothesis):
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        ref, hyp, whole = (Path(folder, name) for name in ("ref", "hyp", "whole"))
        ref.write_text(rttm(reference))
        hyp.write_text(rttm(hypothesis))
        whole.write_text(f"x 1 0 {max(e for _, e, _ in reference + hypothesis) + 1}\n")
        for key, collar, skip in ways():
            command = ["perl", program, "-c", str(collar), "-r", ref, "-s", hyp, "-u", whole]
            text = subprocess.run(command + ["-1"] * skip, capture_output=True, text=True, check=True).stdout
            names = ("SCORED SPEAKER", "MISSED SPEAKER", "FALARM SPEAKER", "SPEAKER ERROR")
            out[key] = [float(re.search(rf"{name} TIME = *([0-9.]+)", text)[1]) for name in names]
    return out


def recordings(file, folder, program=None):
    for line in Path(file).read_text().splitlines():
        c = json.loads(line)
        fields = [x.split() for x in Path(folder, c["recording"] + ".rttm").read_text().splitlines()]
        c["reference"] = [
            [float(x[3]), float(x[3]) + float(x[4]), x[7]] for x in fields if x and x[0] == "SPEAKER"
        ]
        c["want"] = scores(c["reference"], c["hypothesis"])
        if program:
            c["md_eval"] = md_eval(program, c["reference"], c["hypothesis"])
        print(json.dumps(c))


def main():
    if not sys.argv[1].isdigit():
        return recordings(*sys.argv[1:])
    rng = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(json.dumps(case(rng)))


main()
