package onnx

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// frames implements families with one graph x, x_lens → log probabilities:
// icefall's Zipformer CTC and WeNet CTC. They differ in the features, in
// batching and in the name of one output.
type frames struct {
	ctcGraph
	fbank  *dsp.Extractor
	lens   ort.Info
	counts string // name of the output with the numbers of rows
}

// zipformerPadding is ln(1e-10), which pads the shorter windows of a batch.
const zipformerPadding = -23.025850929940457

func openFrames(m parts, g *ort.Graph, contract string, vocab *vocabulary, opt ort.Options) (network, error) {
	o := dsp.DefaultFbankOptions()
	f := &frames{ctcGraph: ctcGraph{single: single{source: m.ONNX}, out: "log_probs"}}
	subsampling, err := metaInt(g, m.ONNX, "subsampling_factor", 4, 1, 64)
	if err != nil {
		return nil, err
	}
	if contract == models.ContractZipformerCTC {
		o.SnipEdges, o.HighHz = false, -400
		f.counts, f.batch = alias(g.Output, "log_probs_len", "log_probs_lens"), !oneAtATime(g, "x")
	} else {
		o.Scale = 32768
		f.counts = alias(g.Output, "log_probs_lens", "log_probs_len")
	}
	f.fbank = dsp.NewFbank(o)
	inputs := []ort.Info{float("x", -1, -1, 80), {Name: "x_lens"}}
	if err := check(g, inputs, float(f.out, -1, -1, -1), ort.Info{Name: f.counts}); err != nil {
		return nil, err
	}
	if f.lens, err = checkInteger(g, m.ONNX, "x_lens"); err != nil {
		return nil, err
	}
	if err := checkWidth(g, m.ONNX, f.out, vocab); err != nil {
		return nil, err
	}
	if vocab.blank < 0 {
		return nil, fmt.Errorf("%s: %w: %s has no blank (<blk>, <blank> or <eps>)", m.ONNX, ErrTokens, vocab.name)
	}
	f.head = head{vocab: vocab, blank: vocab.blank, shift: float64(subsampling) * 0.01}
	return f, f.open(opt, f.out, f.counts)
}

func (f *frames) features(samples []float32) matrix { return fbankMatrix(f.fbank, samples) }

// fbankMatrix returns the 80 filter bank energies of each frame.
func fbankMatrix(fbank *dsp.Extractor, samples []float32) matrix {
	n := fbank.Frames(len(samples))
	m := matrix{data: make([]float32, n*80), frames: n, dim: 80}
	fbank.Compute(m.data, samples)
	return m
}

func (f *frames) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	out, err := f.session.Run(ctx, map[string]*ort.Tensor{
		"x":      pad(windows, zipformerPadding),
		"x_lens": lengths(f.lens, frameCounts(windows)),
	}, f.out, f.counts)
	if err != nil {
		return nil, err
	}
	return f.decodeRows(out[0], out[1].Integers(), len(windows), req)
}
