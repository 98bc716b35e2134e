package onnx

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/internal/dsp"
	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
)

// frames implements families with one graph x, x_lens → log probabilities:
// icefall's Zipformer CTC and WeNet CTC. They differ in the features, in
// batching and in the name of one output.
type frames struct {
	session       *ort.Session
	source        ort.Source
	fbank         *dsp.Fbank
	head          head
	lens          ort.Info
	probs, counts string
	batch         bool
	outWidth      int
}

// zipformerPadding is ln(1e-10), the value that shorter windows of a batch are
// padded with.
const zipformerPadding = -23.025850929940457

func openFrames(m parts, g *ort.Graph, contract string, vocab *vocabulary, opt ort.Options) (network, error) {
	o := dsp.DefaultFbankOptions()
	f := &frames{source: m.ONNX, probs: "log_probs", outWidth: vocab.size()}
	subsampling, err := metaInt(g, m.ONNX, "subsampling_factor", 4, 1, 64)
	if err != nil {
		return nil, err
	}
	if contract == models.ContractZipformerCTC {
		o.SnipEdges, o.HighHz = false, -400
		f.counts, f.batch = aliasOutput(g, "log_probs_len", "log_probs_lens"), true
	} else {
		o.Scale = 32768
		f.counts = aliasOutput(g, "log_probs_lens", "log_probs_len")
	}
	f.fbank = dsp.NewFbank(o)
	if err := g.Check(ort.Contract{
		Inputs:  []ort.Info{{Name: "x", Type: ort.Float32, Shape: []int64{-1, -1, 80}}, {Name: "x_lens"}},
		Outputs: []ort.Info{{Name: f.probs, Type: ort.Float32, Shape: []int64{-1, -1, -1}}, {Name: f.counts}},
		Exact:   true,
	}); err != nil {
		return nil, err
	}
	if f.lens, err = checkInteger(g, m.ONNX, "x_lens"); err != nil {
		return nil, err
	}
	out, _ := g.Output(f.probs)
	if err := checkWidth(m.ONNX, out, f.outWidth, vocab); err != nil {
		return nil, err
	}
	if vocab.blank < 0 {
		return nil, fmt.Errorf("%s: %w: %s has no blank (<blk>, <blank> or <eps>)", m.ONNX, ErrTokens, vocab.name)
	}
	f.head = head{vocab: vocab, blank: vocab.blank, shift: float64(subsampling) * 0.01}
	if in, _ := g.Input("x"); in.Rank() == 3 && in.Shape[0] == 1 {
		f.batch = false // the export's batch dimension is fixed
	}
	f.session, err = ort.Open(m.ONNX, withOutputs(opt, f.probs, f.counts))
	return f, err
}

func withOutputs(opt ort.Options, names ...string) ort.Options {
	opt.Outputs = names
	return opt
}

func (f *frames) features(samples []float32) matrix { return fbankMatrix(f.fbank, samples) }

// fbankMatrix returns the 80 filter bank energies of each frame.
func fbankMatrix(fbank *dsp.Fbank, samples []float32) matrix {
	n := fbank.Frames(len(samples))
	m := matrix{data: make([]float32, n*80), frames: n, dim: 80}
	fbank.Compute(m.data, samples)
	return m
}

func (f *frames) batchable() bool     { return f.batch }
func (f *frames) languages() []string { return nil }
func (f *frames) ctc() *head          { return &f.head }
func (f *frames) close() error        { return f.session.Close() }

func (f *frames) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	out, err := f.session.Run(ctx, map[string]*ort.Tensor{
		"x":      pad(windows, zipformerPadding),
		"x_lens": lengths(f.lens, frameCounts(windows)),
	}, f.probs, f.counts)
	if err != nil {
		return nil, err
	}
	return f.head.decodeRows(f.source, output{name: f.probs, scores: out[0], counts: out[1], windows: len(windows), columns: f.outWidth}, req)
}

// output is the CTC output [N,T',V] of a network.
type output struct {
	name             string
	scores, counts   *ort.Tensor // counts: each window's number of rows
	windows, columns int         // N and V
	skip             int         // leading rows of each window to skip
}

// decodeRows decodes each window's own rows of an output.
func (h *head) decodeRows(source ort.Source, out output, req request) ([]hypothesis, error) {
	n, columns, skip := out.windows, out.columns, out.skip
	data, rows, err := scoreRows(source, out.name, out.scores, n, columns, h.vocab)
	if err != nil {
		return nil, err
	}
	lens := out.counts.Integers()
	if len(lens) != n {
		return nil, fmt.Errorf("%s: %w: expected %d lengths of %s, found %d", source, ErrContract, n, out.name, len(lens))
	}
	hyps := make([]hypothesis, n)
	for i := range hyps {
		own := int(min(max(lens[i], int64(skip)), int64(rows)))
		own = max(own-skip, 0)
		first := (i*rows + min(skip, rows)) * columns
		window := data[first : first+own*columns]
		norms := h.norms(window, own, columns)
		hyps[i].emissions = h.search(window, norms, columns, prefixesPerBeam*req.beam, req.fusion)
		hyps[i].spotted = req.spotter.Find(window, norms, columns)
		hyps[i].emissions = h.put(hyps[i].emissions, hyps[i].spotted)
		if req.keep {
			hyps[i].rows = align.NewRows(window, norms, columns, h.blank, h.shift)
		}
	}
	return hyps, nil
}
