"""Writes the two transducers in the layouts of published ones.
usage: python3 -m training.asr.transducer_files CK.pt OUT
OUT/rnnt: icefall's encoder, decoder, joiner (k2-fsa); OUT/tdt: NeMo's."""

import sys
from pathlib import Path

import onnx
import torch
import torch.nn as nn

from ..onnxfile import export
from .ctc import CTC
from .transducer import CONTEXT, STAYS, Pieces, Transducer
from .vocab import Tok

D = 256


class Part(nn.Module):
    """A separate graph."""

    def __init__(s, net: Transducer):
        super().__init__()
        s.net = net


class Joiner(nn.Module):
    """The joiner of icefall's and of NeMo's files; it adds its inputs."""

    def forward(s, heard: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        return heard + told


class KaldiEncoder(Part):
    """icefall's encoder."""

    def forward(s, x: torch.Tensor, x_lens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return s.net.frames(x, x_lens, "rnnt")


class ContextDecoder(Part):
    """icefall's prediction network."""

    def forward(s, y: torch.Tensor) -> torch.Tensor:
        return s.net.predict(s.net.embed(y[:, 0]), y[:, 1], "rnnt")


class MelEncoder(Part):
    """NeMo's encoder."""

    def forward(s, audio_signal: torch.Tensor, length: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = s.net.adapt(audio_signal).transpose(1, 2)
        heard, lens = s.net.frames(x, length, "tdt")
        return heard.transpose(1, 2), lens


class StateDecoder(Part):
    """NeMo's prediction network has a recurrent state of two tensors. Here the first is the last token's embedding,
    and the second does not change."""

    def forward(s, targets: torch.Tensor, target_length: torch.Tensor, states: torch.Tensor, cells: torch.Tensor):
        last = targets.long()[:, 0]
        told = s.net.predict(states[0], last, "tdt").unsqueeze(2)
        return told, target_length + 0, s.net.embed(last).unsqueeze(0), cells + 0


class DurationJoiner(Joiner):
    """NeMo's joiner: its output has an axis for frames and one for tokens."""

    def forward(s, heard: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        return (heard + told).transpose(1, 2).unsqueeze(2)


def write(
    net: nn.Module, inputs: dict[str, torch.Tensor], outputs: list[str], path: Path, free: dict, **metadata
) -> None:
    """One graph; free: names of the axes without a length."""
    export(net, tuple(inputs.values()), str(path), input_names=list(inputs), output_names=outputs, dynamic_axes=free)
    m = onnx.load(path)
    for k, v in metadata.items():
        e = m.metadata_props.add()
        e.key, e.value = k, str(v)
    onnx.save(m, path)


def blank_last(net: Transducer) -> None:
    """Renumbers the tokens as NeMo does: the blank after all others."""
    net.blank = net.V - 1
    order = list(range(1, net.V)) + [0]
    net.emb.weight.data, net.again.data = net.emb.weight.data[order], net.again.data[order]
    order += range(net.V, net.V + STAYS)
    for last in net.heard["tdt"], net.told["tdt"]:
        last.weight.data, last.bias.data = last.weight.data[order], last.bias.data[order]


def icefall(net: Transducer, folder: Path, pieces: list[str]) -> None:
    """RNN-T in k2-fsa's layout."""
    about = dict(model_type="zipformer2", model_author="otograph", version="1", comment="synthetic speech")
    write(
        KaldiEncoder(net),
        dict(x=torch.randn(2, 203, 80), x_lens=torch.tensor([203, 150])),
        ["encoder_out", "encoder_out_lens"],
        folder / "encoder.onnx",
        dict(x={0: "N", 1: "T"}, x_lens={0: "N"}, encoder_out={0: "N", 1: "T4"}, encoder_out_lens={0: "N"}),
        **about,
    )
    write(
        ContextDecoder(net),
        dict(y=torch.zeros(1, CONTEXT, dtype=torch.long)),
        ["decoder_out"],
        folder / "decoder.onnx",
        dict(y={0: "N"}, decoder_out={0: "N"}),
        context_size=CONTEXT,
        vocab_size=net.V,
    )
    write(
        Joiner(),
        dict(encoder_out=torch.randn(1, net.V), decoder_out=torch.randn(1, net.V)),
        ["logit"],
        folder / "joiner.onnx",
        dict(encoder_out={0: "N"}, decoder_out={0: "N"}, logit={0: "N"}),
        joiner_dim=net.V,
    )
    tokens(folder, ["<blk>", *pieces])


def nemo(net: Transducer, folder: Path, pieces: list[str]) -> None:
    """TDT in NeMo's layout, for k2-fsa's runtime."""
    blank_last(net)
    write(
        MelEncoder(net),
        dict(audio_signal=torch.randn(2, 80, 203), length=torch.tensor([203, 150])),
        ["outputs", "encoded_lengths"],
        folder / "encoder.onnx",
        dict(audio_signal={0: "B", 2: "T"}, length={0: "B"}, outputs={0: "B", 2: "T4"}, encoded_lengths={0: "B"}),
        model_type="EncDecRNNTBPEModel",
        vocab_size=net.V - 1,
        normalize_type="NA",
        subsampling_factor=4,
        pred_rnn_layers=1,
        pred_hidden=D,
        feat_dim=80,
        url="synthetic speech, tdt",
    )
    state = torch.zeros(1, 1, D)
    write(
        StateDecoder(net),
        dict(targets=torch.tensor([[0]], dtype=torch.int32), target_length=torch.tensor([1], dtype=torch.int32))
        | dict(states=state, cells=state.clone()),
        ["outputs", "prednet_lengths", "next_states", "next_cells"],
        folder / "decoder.onnx",
        {},
    )
    write(
        DurationJoiner(),
        dict(encoder_outputs=torch.randn(1, net.V + STAYS, 1), decoder_outputs=torch.randn(1, net.V + STAYS, 1)),
        ["outputs"],
        folder / "joiner.onnx",
        {},
    )
    tokens(folder, [*pieces, "<blk>"])


def tokens(folder: Path, symbols: list[str]) -> None:
    """The list of tokens."""
    lines = [f"{s.replace(' ', '▁')} {i}\n" for i, s in enumerate(symbols)]
    (folder / "tokens.txt").write_text("".join(lines), encoding="utf-8")


def main(ck: str, out: str) -> None:
    """Writes both from the checkpoint."""
    sd = {k: v.float() for k, v in torch.load(ck).items()}
    count = len(sd["emb.weight"]) - 1
    net = Transducer(CTC(len(Tok().pieces) + 1), count + 1)
    net.load_state_dict(sd)
    pieces = Pieces(count).pieces
    for name, kind in ("rnnt", icefall), ("tdt", nemo):
        folder = Path(out) / name
        folder.mkdir(parents=True, exist_ok=True)
        kind(net, folder, pieces)


if __name__ == "__main__":
    main(*sys.argv[1:])
