"""Writes ONNX files with the exporter that all versions of torch include."""

import inspect
from typing import Any

import torch


def export(net: torch.nn.Module, inputs: tuple[torch.Tensor, ...], path: str, **options: Any) -> None:
    """Traces the network and writes it; options are torch.onnx.export's."""
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:  # torch 2.5 and later
        options["dynamo"] = False
    torch.onnx.export(net.eval(), inputs, path, **{"opset_version": 16} | options)
