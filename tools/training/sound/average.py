"""Average of finished voice detectors, weight by weight.

usage: python3 -m training.sound.average OUT.onnx BIAS SHARE A.onnx [SHARE B.onnx ...]
A fine-tuned model averaged with its original keeps most of the abilities of both. BIAS is added to
the logit (averaged models are less confident).  Graph and metadata are A's.
"""

import sys

from .vad import Vad, load_onnx, store_onnx


def main() -> None:
    out, bias, rest = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    total = sum(map(float, rest[::2]))
    m, w = Vad(), {}
    for share, path in zip(rest[::2], rest[1::2]):
        load_onnx(m, path)
        for k, t in m.state_dict().items():
            w[k] = w.get(k, 0) + t * (float(share) / total)
    w["out.bias"] = w["out.bias"] + bias
    m.load_state_dict(w)
    store_onnx(m, rest[1], out)


if __name__ == "__main__":
    main()
