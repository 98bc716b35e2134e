#!/usr/bin/env python3
"""Export speechbrain's ECAPA-TDNN speaker model to ONNX.

    python3 speechbrain_ecapa.py speechbrain-ecapa.onnx

Fetches speechbrain/spkrec-ecapa-voxceleb (or takes --source FOLDER, a local copy). The result takes
`fbank` float32 [batch, frames, 80], speechbrain's own filter banks with the mean over the utterance
subtracted, and returns `embs` float32 [batch, 192], not normalized. Its metadata says
framework=speechbrain, because the shape alone does not distinguish it from wespeaker's, whose
features differ.

Needs torch, speechbrain, numpy, onnx and onnxruntime.
"""

import argparse

import numpy as np
import onnx
import onnxruntime
import torch
from speechbrain.inference.speaker import EncoderClassifier


class Embedding(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, fbank):
        return self.network(fbank).squeeze(1)  # [batch, 1, 192]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("onnx")
    parser.add_argument("--source", default="speechbrain/spkrec-ecapa-voxceleb")
    parser.add_argument("--savedir", default="speechbrain-ecapa", help="where speechbrain keeps its copy")
    args = parser.parse_args()
    classifier = EncoderClassifier.from_hparams(source=args.source, savedir=args.savedir, run_opts={"device": "cpu"})
    net = Embedding(classifier.mods.embedding_model).eval()
    torch.onnx.export(
        net, (torch.randn(1, 200, 80),), args.onnx, input_names=["fbank"], output_names=["embs"],
        dynamic_axes={"fbank": {0: "batch", 1: "frames"}, "embs": {0: "batch"}}, opset_version=17, dynamo=False,
    )
    model = onnx.load(args.onnx)
    facts = {"framework": "speechbrain", "sample_rate": "16000", "output_dim": "192", "license": "Apache-2.0"}
    for key, value in facts.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(model)
    onnx.save(model, args.onnx)

    session = onnxruntime.InferenceSession(args.onnx, providers=["CPUExecutionProvider"])
    for batch, frames in ((1, 300), (3, 151)):
        fbank = torch.randn(batch, frames, 80)
        with torch.no_grad():
            want = net(fbank).numpy()
        got, = session.run(["embs"], {"fbank": fbank.numpy()})
        if got.shape != (batch, 192):
            raise SystemExit(f"expected [{batch}, 192], found {list(got.shape)}")
        cosine = (want * got).sum(1) / np.linalg.norm(want, axis=1) / np.linalg.norm(got, axis=1)
        print(f"[{batch}, {frames}]: smallest cosine {cosine.min():.6f}")
        if cosine.min() < 0.9999:
            raise SystemExit("the exported graph does not agree with the network")


if __name__ == "__main__":
    main()
