"""Impostor vectors for demo-speaker: many synthetic voices that a known voice must beat.

usage: python3 -m training.sound.strangers VECTORS MODEL.onnx OUT [COUNT [VOICE …]]
VECTORS is a JSON list of {"voice": name, "vector": [...]}, which OTOGRAPH_VOICES_EXPORT=VECTORS
go test ./diarize -run VectorsOfVoices writes for the recordings in the folder OTOGRAPH_VOICES_COHORT. COUNT (256)
of them are chosen so that each voice has a similar one. The named voices (before the _) are left out: bdl speaks in
the bundled recording, and a voice known from it must not be an impostor. OUT contains the model's SHA-256 and then the
numbers, one signed byte each, scaled by the vector's largest.
"""

import hashlib
import json
import sys

import numpy as np


def spread(x: np.ndarray, count: int) -> list[int]:
    """Greedy facility location: the vectors to which all others are nearest."""
    g, near, out = x @ x.T, np.full(len(x), -1.0), []
    for _ in range(min(count, len(x))):
        gain = np.maximum(g, near[None]).sum(1)
        gain[out] = -np.inf
        out.append(int(gain.argmax()))
        near = np.maximum(near, g[out[-1]])
    return out


def main() -> None:
    vectors, model, out = sys.argv[1:4]
    count, left_out = int((sys.argv[4:] + [256])[0]), sys.argv[5:]
    known = [v for v in json.load(open(vectors)) if v["voice"].split("_")[0] not in left_out]
    x = np.array([v["vector"] for v in known], np.float64)
    x = x[spread(x, count)]
    q = np.round(x * 127 / np.abs(x).max(1, keepdims=True)).astype(np.int8)
    with open(out, "wb") as f:
        f.write(hashlib.sha256(open(model, "rb").read()).digest() + q.tobytes())


if __name__ == "__main__":
    main()
