package onnx

import (
	"context"
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/dsp"
	"github.com/otograph/otograph/internal/ort"
)

// nemoFront is the front end of NeMo models and of GigaAM: log-mel, normalized
// per band if the model needs it, laid out [bands, T].
type nemoFront struct {
	mel       spectrum
	normalize bool
	// signal and length are the names of the inputs.
	signal, length string
	// subsampling is the number of frames per output row.
	subsampling int
	lens        ort.Info
}

// spectrum computes log-mel bands.
type spectrum interface {
	Bands() int
	// Valid returns the number of frames for n samples.
	Valid(n int) int
	// Compute writes the first frames to dst, one after another.
	Compute(dst, samples []float32, frames int)
}

func openNeMoFront(m parts, g *ort.Graph) (nemoFront, error) {
	f := nemoFront{signal: "audio_signal", length: "length"}
	c, err := parseConfig(m.Config)
	if err != nil {
		return f, fmt.Errorf("%s: %w", m.ONNX, err)
	}
	if giga(m.Contract, g) {
		return openGigaAMFront(m, g, c)
	}
	in, _ := g.Input("audio_signal")
	bands := 80
	if in.Rank() == 3 && in.Shape[1] > 0 {
		bands = int(in.Shape[1])
	} else if c.Features > 0 {
		bands = c.Features
	}
	if bands, err = metaInt(g, m.ONNX, "feat_dim", bands, 1, 512); err != nil {
		return f, err
	}
	if bands != 64 && bands != 80 && bands != 128 {
		return f, fmt.Errorf("%s: %w: expected 64, 80 or 128 mel bands, found %d", m.ONNX, ErrContract, bands)
	}
	if err := g.Check(ort.Contract{
		Inputs: []ort.Info{{Name: "audio_signal", Type: ort.Float32, Shape: []int64{-1, int64(bands), -1}}, {Name: "length"}}, Exact: true,
	}); err != nil {
		return f, err
	}
	if f.lens, err = checkInteger(g, m.ONNX, "length"); err != nil {
		return f, err
	}
	factor := c.Subsampling
	if factor == 0 {
		factor = 8
	}
	if f.subsampling, err = metaInt(g, m.ONNX, "subsampling_factor", factor, 1, 64); err != nil {
		return f, err
	}
	switch n, ok := g.Metadata["normalize_type"]; {
	case !ok || n == "per_feature":
		f.normalize = true
	case n == "" || strings.EqualFold(n, "NA") || strings.EqualFold(n, "none"):
	default:
		return f, fmt.Errorf("%s: %w: metadata normalize_type: expected per_feature or NA, found %.40q", m.ONNX, ErrContract, n)
	}
	f.mel = dsp.NewNeMoMel(bands)
	return f, nil
}

// features returns frames × bands, already laid out as [bands, T].
func (f *nemoFront) features(samples []float32) matrix {
	bands, n := f.mel.Bands(), f.mel.Valid(len(samples))
	rows := make([]float32, n*bands)
	f.mel.Compute(rows, samples, n)
	if f.normalize {
		dsp.NormalizePerFeature(rows, n, bands)
	}
	m := matrix{data: make([]float32, n*bands), frames: n, dim: bands}
	dsp.Transpose(m.data, rows, n, bands, n)
	return m
}

func (f *nemoFront) inputs(w matrix) map[string]*ort.Tensor {
	return map[string]*ort.Tensor{
		f.signal: ort.NewFloat32([]int64{1, int64(w.dim), int64(w.frames)}, w.data),
		f.length: lengths(f.lens, []int{w.frames}),
	}
}

// shift returns the duration of an output row in seconds.
func (f *nemoFront) shift() float64 { return float64(f.subsampling) * 0.01 }

// nemoBlank returns the id of the blank symbol, or else the last id.
func nemoBlank(vocab *vocabulary) int {
	if vocab.blank >= 0 {
		return vocab.blank
	}
	return vocab.size() - 1
}

// nemoCTC implements NeMo's CTC models and CTC branches of hybrids, and
// GigaAM's. Exports lack the masks of their convolutions, so windows run one by
// one, without padding.
type nemoCTC struct {
	nemoFront
	session *ort.Session
	source  ort.Source
	head    head
	out     string // name of the output
}

func openNeMo(m parts, g *ort.Graph, vocab *vocabulary, opt ort.Options) (network, error) {
	front, err := openNeMoFront(m, g)
	if err != nil {
		return nil, err
	}
	name := aliasOutput(g, "logprobs", "log_probs")
	if err := g.Check(ort.Contract{Outputs: []ort.Info{{Name: name, Type: ort.Float32, Shape: []int64{-1, -1, -1}}}}); err != nil {
		return nil, err
	}
	out, _ := g.Output(name)
	if err := checkWidth(m.ONNX, out, vocab.size(), vocab); err != nil {
		return nil, err
	}
	s, err := ort.Open(m.ONNX, withOutputs(opt, name))
	if err != nil {
		return nil, err
	}
	return &nemoCTC{
		nemoFront: front, session: s, source: m.ONNX, out: name,
		head: head{vocab: vocab, blank: nemoBlank(vocab), shift: front.shift()},
	}, nil
}

func (n *nemoCTC) batchable() bool     { return false }
func (n *nemoCTC) languages() []string { return nil }
func (n *nemoCTC) ctc() *head          { return &n.head }
func (n *nemoCTC) close() error        { return n.session.Close() }

func (n *nemoCTC) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	hyps := make([]hypothesis, len(windows))
	for i, w := range windows {
		out, err := n.session.Run(ctx, n.inputs(w), n.out)
		if err != nil {
			return nil, err
		}
		// The graph returns no lengths; the subsampling determines the number
		// of real rows.
		rows := ort.NewInt64([]int64{1}, []int64{int64((w.frames-1)/n.subsampling + 1)})
		h, err := n.head.decodeRows(n.source, output{name: n.out, scores: out[0], counts: rows, windows: 1, columns: n.head.vocab.size()}, req)
		if err != nil {
			return nil, err
		}
		hyps[i] = h[0]
	}
	return hyps, nil
}
