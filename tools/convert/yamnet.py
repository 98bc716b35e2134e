#!/usr/bin/env python3
"""Export the published YAMNet weights (yamnet.h5) to ONNX.

    python3 yamnet.py yamnet.h5 yamnet.onnx

The result takes `patches` float32 [n, 96, 64] (log-mel, 0.96 s each) and returns `scores`
float32 [n, 521], sigmoid, and `embeddings` [n, 1024]. The front end is
computed by the caller.

The network (MobileNet v1 without its last layers; published in the TensorFlow
models repository under research/audioset/yamnet) is built here from its
description, so neither TensorFlow nor Keras is needed: numpy, h5py, onnx and
onnxruntime are enough.
"""

import argparse

import h5py
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# Stride and channels of the separable layers 2 to 14; layer 1 is a full
# convolution with stride 2 and 32 channels.
SEPARABLE = [(1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512), (1, 512),
             (1, 512), (1, 512), (1, 512), (1, 512), (2, 1024), (1, 1024)]
EPSILON = 1e-4  # of the batch norms, which have no scale


class Weights:
    """The arrays of an HDF5 file by the end of their path, because Keras repeats the layer's name
    in it."""

    def __init__(self, path):
        self.arrays = {}
        with h5py.File(path, "r") as file:
            file.visititems(self.visit)
        self.path = path

    def visit(self, name, item):
        if isinstance(item, h5py.Dataset):
            self.arrays["/" + name] = np.asarray(item, dtype=np.float32)

    def only(self, shape):
        """Returns the only array of a shape: the classifier's layer has no fixed name."""
        found = [a for a in self.arrays.values() if a.shape == shape]
        if len(found) != 1:
            raise SystemExit(f"{self.path}: expected one array of shape {shape}, found {len(found)}")
        return found[0]

    def get(self, name, shape):
        found = [a for path, a in self.arrays.items() if path.endswith(f"/{name}:0") or path.endswith(f"/{name}")]
        if len(found) != 1:
            raise SystemExit(
                f"{self.path}: expected one {name}, found {len(found)}; it has {sorted(self.arrays)[:8]} …"
            )
        if found[0].shape != shape:
            raise SystemExit(f"{self.path}: {name}: expected shape {shape}, found {found[0].shape}")
        return found[0]


class Builder:
    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], []
        self.value = "patches_nchw"

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array, dtype=np.float32), name))
        return name

    def convolution(self, name, kernel, stride, group, channels):
        """A convolution with its batch norm folded in, and ReLU. kernel is
        [outputs, inputs per group, height, width]."""
        shape = (channels,)
        beta = self.weights.get(f"{name}/bn/beta", shape)
        mean = self.weights.get(f"{name}/bn/moving_mean", shape)
        variance = self.weights.get(f"{name}/bn/moving_variance", shape)
        scale = 1.0 / np.sqrt(variance + EPSILON)
        w = self.constant(name + ".w", kernel * scale[:, None, None, None])
        b = self.constant(name + ".b", beta - mean * scale)
        size = kernel.shape[2]
        # SAME_UPPER is TensorFlow's "same": the odd zero goes at the end.
        self.nodes.append(helper.make_node(
            "Conv", [self.value, w, b], [name + ".y"], kernel_shape=[size, size], strides=[stride, stride], group=group,
            auto_pad="SAME_UPPER"))
        self.nodes.append(helper.make_node("Relu", [name + ".y"], [name]))
        self.value = name

    def build(self):
        self.constants.append(numpy_helper.from_array(np.array([-1, 1, 96, 64], dtype=np.int64), "shape"))
        self.nodes.append(helper.make_node("Reshape", ["patches", "shape"], [self.value]))
        # Keras kernels are [height, width, inputs, outputs].
        kernel = self.weights.get("layer1/conv/kernel", (3, 3, 1, 32))
        self.convolution("layer1/conv", kernel.transpose(3, 2, 0, 1), 2, 1, 32)
        inputs = 32
        for i, (stride, outputs) in enumerate(SEPARABLE):
            name = f"layer{i + 2}"
            # Depthwise kernels are [height, width, channels, 1].
            kernel = self.weights.get(f"{name}/depthwise_conv/depthwise_kernel", (3, 3, inputs, 1))
            self.convolution(f"{name}/depthwise_conv", kernel.transpose(2, 3, 0, 1), stride, inputs, inputs)
            kernel = self.weights.get(f"{name}/pointwise_conv/kernel", (1, 1, inputs, outputs))
            self.convolution(f"{name}/pointwise_conv", kernel.transpose(3, 2, 0, 1), 1, 1, outputs)
            inputs = outputs
        self.nodes.append(helper.make_node("GlobalAveragePool", [self.value], ["pooled"]))
        self.nodes.append(helper.make_node("Flatten", ["pooled"], ["embeddings"]))
        w = self.constant("logits.w", self.weights.only((1024, 521)))
        b = self.constant("logits.b", self.weights.only((521,)))
        self.nodes.append(helper.make_node("Gemm", ["embeddings", w, b], ["logits"]))
        self.nodes.append(helper.make_node("Sigmoid", ["logits"], ["scores"]))
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "yamnet", [value("patches", TensorProto.FLOAT, ["n", 96, 64])],
            [value("scores", TensorProto.FLOAT, ["n", 521]), value("embeddings", TensorProto.FLOAT, ["n", 1024])],
            self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        helper.set_model_props(model, {"model_type": "yamnet", "sample_rate": "16000", "license": "Apache-2.0"})
        onnx.checker.check_model(model)
        return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights")
    parser.add_argument("onnx")
    args = parser.parse_args()
    onnx.save(Builder(Weights(args.weights)).build(), args.onnx)
    session = onnxruntime.InferenceSession(args.onnx, providers=["CPUExecutionProvider"])
    scores, = session.run(["scores"], {"patches": np.full((2, 96, 64), np.log(0.001), dtype=np.float32)})
    if scores.shape != (2, 521) or not ((scores >= 0) & (scores <= 1)).all():
        raise SystemExit(f"the graph gives {scores.shape} from {scores.min()} to {scores.max()}")
    best = int(scores[0].argmax())
    # Class 494 of YAMNet's list is Silence; digital silence should be it.
    note = "" if best == 494 else ", expected class 494 (Silence)"
    print(f"digital silence: class {best} with {scores[0, best]:.3f}{note}")


if __name__ == "__main__":
    main()
