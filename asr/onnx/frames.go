package onnx

import (
	"context"

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

func openFrames(m parts, g *checker, vocab *vocabulary) (network, error) {
	o := dsp.DefaultFbankOptions()
	f := &frames{ctcGraph: ctcGraph{out: "log_probs"}}
	subsampling := g.number("subsampling_factor", 4, 1, 64)
	if m.Contract == models.ContractZipformerCTC {
		o.SnipEdges, o.HighHz = false, -400
		f.counts, f.batch = alias(g.Output, "log_probs_len", "log_probs_lens"), !g.oneAtATime("x")
	} else {
		o.Scale = 32768
		f.counts = alias(g.Output, "log_probs_lens", "log_probs_len")
	}
	f.fbank = dsp.NewFbank(o)
	inputs := []ort.Info{float("x", -1, -1, 80), {Name: "x_lens"}}
	g.ports(inputs, float(f.out, -1, -1, -1), ort.Info{Name: f.counts})
	f.lens = g.integer("x_lens", 1)
	g.width(f.out, vocab)
	f.head = head{vocab: vocab, blank: g.blank(vocab, "<blk>, <blank> or <eps>"), shift: float64(subsampling) * 0.01}
	return f, f.open(m, g, f.out, f.counts)
}

func (f *frames) features(samples []float32) matrix { return fbankMatrix(f.fbank, samples) }

// fbankMatrix returns the filter bank energies of each frame.
func fbankMatrix(fbank *dsp.Extractor, samples []float32) matrix {
	n, bands := fbank.Frames(len(samples)), fbank.Bands()
	m := matrix{data: make([]float32, n*bands), frames: n, dim: bands}
	fbank.Compute(m.data, samples)
	return m
}

func (f *frames) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	out, err := f.encoder.Run(ctx, map[string]*ort.Tensor{
		"x":      pad(windows, zipformerPadding),
		"x_lens": ort.NewIntegers(f.lens, frameCounts(windows)),
	}, f.out, f.counts)
	if err != nil {
		return nil, err
	}
	return f.decodeRows(out[0], out[1].Integers(), len(windows), req)
}
