#!/usr/bin/env python3
"""Convert the published Silero voice detector from ONNX to whisper.cpp's format.

    python3 silero_ggml.py silero_vad.onnx silero-ggml.bin

Otograph itself runs the ONNX file. The converted file serves to compare with whisper.cpp's own
detection (`whisper_full` with `vad` on), which reads only its own format: see
tools/ref/whisper_full.c and docs/measurements/standard-tier.md.

Silero 5 and 6 hold two networks in the branches of an `If` over the sampling rate;
the script takes the network for 16 kHz, whose STFT kernels have 256 samples. The file
begins with a magic number, the name and version of the network and its dimensions;
the tensors follow, innermost dimension first, kernels of convolutions as float16 and
all others as float32 (the only types that whisper.cpp accepts for them).

Needs numpy and onnx.
"""

import argparse
import struct

import numpy as np
import onnx
from onnx import numpy_helper

MAGIC = 0x67676D6C
WINDOW, CONTEXT = 512, 64  # samples at 16 kHz: new ones, and old ones before them
STFT = "stft.forward_basis_buffer"
# Shapes as PyTorch has them: [outputs, inputs, width] of kernels.
SHAPES = {
    **{
        f"encoder.{i}.reparam_conv.{part}": shape if part == "weight" else shape[:1]
        for i, shape in enumerate([(128, 129, 3), (64, 128, 3), (64, 64, 3), (128, 64, 3)])
        for part in ("weight", "bias")
    },
    # The gates of the LSTM are in PyTorch's order: input, forget, cell, output.
    "decoder.rnn.weight_ih": (512, 128),
    "decoder.rnn.weight_hh": (512, 128),
    "decoder.rnn.bias_ih": (512,),
    "decoder.rnn.bias_hh": (512,),
    "decoder.decoder.2.weight": (1, 128, 1),
    "decoder.decoder.2.bias": (1,),
    STFT: (258, 1, 256),
}


def constants(graph):
    """Yields name and array of every constant, also in branches."""
    for tensor in graph.initializer:
        yield tensor.name, numpy_helper.to_array(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from constants(attribute.g)
            elif node.op_type == "Constant" and attribute.name == "value":
                yield node.output[0], numpy_helper.to_array(attribute.t)


def weights(path):
    """Returns the tensors of the network for 16 kHz by their names in PyTorch."""
    found = list(constants(onnx.load(path).graph))
    prefixes = [name[: -len(STFT)] for name, array in found if name.endswith(STFT) and array.shape == SHAPES[STFT]]
    if len(prefixes) != 1:
        raise SystemExit(
            f"{path}: expected one STFT of {SHAPES[STFT]} as Silero 5 and 6 have for 16 kHz, found {len(prefixes)}"
        )
    arrays = {name[len(prefixes[0]) :]: array for name, array in found if name.startswith(prefixes[0])}
    for name, shape in SHAPES.items():
        if name not in arrays:
            raise SystemExit(f"{path}: expected the tensor {name}, found none")
        if arrays[name].shape != shape:
            raise SystemExit(f"{path}: {name}: expected the shape {shape}, found {arrays[name].shape}")
    return {name: arrays[name] for name in SHAPES}


def write(file, tensors, version):
    def numbers(*values):
        file.write(struct.pack(f"<{len(values)}i", *values))

    def text(s):
        numbers(len(s.encode()))
        file.write(s.encode())

    numbers(MAGIC)
    text("silero-16k")
    numbers(*version, WINDOW, CONTEXT)
    kernels = [shape for name, shape in SHAPES.items() if name.startswith("encoder.") and len(shape) == 3]
    numbers(len(kernels))
    for outputs, inputs, width in kernels:
        numbers(inputs, outputs, width)
    numbers(128, 128, 128, 1)  # the LSTM's input and state; the last convolution's inputs and outputs
    for name, array in tensors.items():
        half = array.ndim == 3
        if name == "decoder.decoder.2.weight":
            array = array.reshape(128)  # a convolution of width 1 is read as a matrix
        encoded = ("_model." + name).encode()
        numbers(array.ndim, len(encoded), int(half), *reversed(array.shape))
        file.write(encoded)
        file.write(np.ascontiguousarray(array, dtype="<f2" if half else "<f4").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("onnx")
    parser.add_argument("ggml")
    parser.add_argument("--version", default="6.2.1", help="of the silero-vad package; whisper.cpp only prints it")
    args = parser.parse_args()
    version = [int(v) for v in args.version.split(".")]
    if len(version) != 3:
        raise SystemExit(f"--version: expected three numbers such as 6.2.1, found {args.version}")
    tensors = weights(args.onnx)
    with open(args.ggml, "wb") as file:
        write(file, tensors, version)
    print(f"{args.ggml}: {len(tensors)} tensors, {sum(a.size for a in tensors.values())} weights")


if __name__ == "__main__":
    main()
