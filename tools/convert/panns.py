#!/usr/bin/env python3
"""Export a published PANNs CNN14 checkpoint to ONNX.

    python3 panns.py Cnn14_mAP=0.431.pth panns-cnn14.onnx

Accepts Cnn14, Cnn14_16k and Cnn14_DecisionLevelMax. The result takes
`waveform` float32 [batch, samples] in [-1, 1] at 32 kHz (Cnn14_16k: 16 kHz) and returns
`clipwise_output` float32 [batch, 527], sigmoid; the decision-level model
also returns `framewise_output` [batch, frames, 527] of 10 ms frames.

The network follows the paper (Kong et al., "PANNs: Large-Scale Pretrained
Audio Neural Networks for Audio Pattern Recognition", 2020). The Fourier kernels
and the mel matrix are taken from the checkpoint, so window, scale and bands are
the trained ones.

Needs torch, numpy, onnx and onnxruntime.
"""

import argparse

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from torch import nn

CLASSES = 527
WIDTHS = [64, 128, 256, 512, 1024, 2048]
DOWNSAMPLING = 32  # five average pools of 2


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)))


class Cnn14(nn.Module):
    def __init__(self, window, bands, decisions):
        super().__init__()
        self.window = window
        self.hop = {1024: 320, 512: 160}[window]
        self.decisions = decisions
        bins = window // 2 + 1
        self.real = nn.Parameter(torch.zeros(bins, 1, window), requires_grad=False)
        self.imag = nn.Parameter(torch.zeros(bins, 1, window), requires_grad=False)
        self.mel = nn.Parameter(torch.zeros(bins, bands), requires_grad=False)
        self.bn0 = nn.BatchNorm2d(bands)
        for i, width in enumerate(WIDTHS):
            self.add_module(f"conv_block{i + 1}", Block(WIDTHS[i - 1] if i else 1, width))
        self.fc1 = nn.Linear(2048, 2048)
        self.fc_audioset = nn.Linear(2048, CLASSES)

    def forward(self, waveform):
        half = self.window // 2
        x = F.pad(waveform.unsqueeze(1), (half, half), mode="reflect")
        real = F.conv1d(x, self.real, stride=self.hop)
        imag = F.conv1d(x, self.imag, stride=self.hop)
        power = (real * real + imag * imag).transpose(1, 2)  # [batch, frames, bins]
        frames = power.shape[1]
        x = torch.matmul(power, self.mel)
        x = 10.0 * torch.log10(torch.clamp(x, min=1e-10))
        x = self.bn0(x.unsqueeze(1).transpose(1, 3)).transpose(1, 3)  # per band
        for i in range(len(WIDTHS)):
            x = getattr(self, f"conv_block{i + 1}")(x)
            if i < len(WIDTHS) - 1:
                x = F.avg_pool2d(x, 2)
        x = torch.mean(x, dim=3)  # over the bands: [batch, 2048, frames/32]
        if not self.decisions:
            x = torch.amax(x, dim=2) + torch.mean(x, dim=2)
            return torch.sigmoid(self.fc_audioset(F.relu(self.fc1(x))))
        x = F.max_pool1d(x, 3, stride=1, padding=1) + F.avg_pool1d(x, 3, stride=1, padding=1)
        x = torch.sigmoid(self.fc_audioset(F.relu(self.fc1(x.transpose(1, 2)))))
        # Each decision covers 32 frames, the last one also the rest.
        index = torch.clamp(torch.arange(frames, device=x.device) // DOWNSAMPLING, max=x.shape[1] - 1)
        return torch.amax(x, dim=1), torch.index_select(x, 1, index)


# Names in the checkpoint that differ from the names above.
RENAMED = {
    "spectrogram_extractor.stft.conv_real.weight": "real",
    "spectrogram_extractor.stft.conv_imag.weight": "imag",
    "logmel_extractor.melW": "mel",
}


def load(path, decisions):
    """Builds the network that a checkpoint fits and loads it; both must have the same weights."""
    weights = torch.load(path, map_location="cpu", weights_only=True)["model"]
    weights = {RENAMED.get(name, name): value for name, value in weights.items()}
    for name in ("real", "mel"):
        if name not in weights:
            raise SystemExit(f"{path}: expected a PANNs checkpoint, found no {name}")
    net = Cnn14(weights["real"].shape[2], weights["mel"].shape[1], decisions)
    try:
        net.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        raise SystemExit(f"{path}: expected the weights of CNN14: {error}") from error
    return net.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("onnx")
    parser.add_argument("--decision-level", action="store_true", help="the checkpoint is Cnn14_DecisionLevelMax")
    args = parser.parse_args()
    decisions = args.decision_level or "DecisionLevel" in args.checkpoint
    net = load(args.checkpoint, decisions)
    rate = net.hop * 100
    outputs = ["clipwise_output", "framewise_output"] if decisions else ["clipwise_output"]
    axes = {"waveform": {0: "batch", 1: "samples"}, "clipwise_output": {0: "batch"}}
    if decisions:
        axes["framewise_output"] = {0: "batch", 1: "frames"}
    torch.onnx.export(
        net, (torch.randn(1, 2 * rate) * 0.1,), args.onnx, input_names=["waveform"], output_names=outputs,
        dynamic_axes=axes, opset_version=17, dynamo=False,
    )
    model = onnx.load(args.onnx)
    for key, value in {"model_type": "panns", "sample_rate": str(rate), "license": "CC-BY-4.0"}.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(model)
    onnx.save(model, args.onnx)

    # The exported graph must agree with the network on other lengths and batches.
    session = onnxruntime.InferenceSession(args.onnx, providers=["CPUExecutionProvider"])
    for batch, samples in ((1, rate), (2, 3 * rate + 1234)):
        wave = torch.randn(batch, samples) * 0.1
        with torch.no_grad():
            want = net(wave)
        want = [w.numpy() for w in (want if decisions else (want,))]
        got = session.run(outputs, {"waveform": wave.numpy()})
        for name, a, b in zip(outputs, want, got):
            worst = float(np.abs(a - b).max())
            print(f"{name} [{batch}, {samples}]: largest difference {worst:.2e}")
            if worst > 1e-3:
                raise SystemExit("the exported graph does not agree with the network")


if __name__ == "__main__":
    main()
