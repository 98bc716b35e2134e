#!/usr/bin/env python3
"""Round the weights of an ONNX file to 8 bits and a power of two, so that it compresses well.

    python3 round_weights.py campplus-zh-en.onnx rounded.onnx

Every tensor of at least 1,024 float32 numbers becomes whole multiples of a
power of two for each of its first dimension's rows, at most 127 times it. The
numbers stay float32: the file opens everywhere, computes as before, and
compresses to a quarter. Prints the largest relative error of a row.
"""

import argparse

import numpy as np
import onnx
from onnx import numpy_helper


def rounded(weights):
    rows = weights.reshape(weights.shape[0], -1)
    peak = np.abs(rows).max(axis=1, keepdims=True)
    step = np.exp2(np.ceil(np.log2(np.maximum(peak, 1e-30) / 127)))
    return (np.round(rows / step) * step).reshape(weights.shape).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    args = parser.parse_args()
    model = onnx.load(args.source)
    worst = 0.0
    tensors = list(model.graph.initializer)
    tensors += [a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    for tensor in tensors:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype != np.float32 or weights.size < 1024:
            continue
        fresh = rounded(weights)
        worst = max(worst, float(np.linalg.norm(fresh - weights) / np.linalg.norm(weights)))
        tensor.CopyFrom(numpy_helper.from_array(fresh, tensor.name))
    onnx.save(model, args.target)
    print(f"{args.target}: largest relative error of a tensor {worst:.4f}")


if __name__ == "__main__":
    main()
