package onnx

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// nemoFront is the front end of NeMo models and of GigaAM: log-mel, normalized
// per band if the model needs it, laid out [bands, T].
type nemoFront struct {
	mel       *dsp.Extractor
	normalize bool
	// signal and length are the names of the inputs.
	signal, length string
	// subsampling is the number of frames per output row.
	subsampling int
	lens        ort.Info
	config      nemoConfig
}

func openNeMoFront(m parts, g *ort.Graph) (f nemoFront, err error) {
	if f.config, err = parseConfig(m.Config); err != nil {
		return f, fmt.Errorf("%s: %w", m.ONNX, err)
	}
	subsampling := 8
	if giga(m.Contract, g) {
		f.signal, f.length = alias(g.Input, "features", "audio_signal"), alias(g.Input, "feature_lengths", "length")
		subsampling = 4
		f.mel, err = gigaMel(m, g, f.config)
	} else {
		f.signal, f.length = "audio_signal", "length"
		f.mel, f.normalize, err = nemoMel(m, g, f.config)
	}
	if err != nil {
		return f, err
	}
	if err := check(g, []ort.Info{float(f.signal, -1, int64(f.mel.Bands()), -1), {Name: f.length}}); err != nil {
		return f, err
	}
	if f.lens, err = checkInteger(g, m.ONNX, f.length); err != nil {
		return f, err
	}
	f.subsampling, err = metaInt(g, m.ONNX, "subsampling_factor", cmp.Or(f.config.Subsampling, subsampling), 1, 64)
	return f, err
}

// nemoMel returns a NeMo model's log-mel bands, and if they are normalized.
func nemoMel(m parts, g *ort.Graph, c nemoConfig) (mel *dsp.Extractor, normalize bool, err error) {
	bands := cmp.Or(c.Features, 80)
	if in, _ := g.Input("audio_signal"); in.Rank() == 3 && in.Shape[1] > 0 {
		bands = int(in.Shape[1])
	}
	if bands, err = metaInt(g, m.ONNX, "feat_dim", bands, 1, 512); err != nil {
		return nil, false, err
	}
	if bands != 64 && bands != 80 && bands != 128 {
		return nil, false, fmt.Errorf("%s: %w: expected 64, 80 or 128 mel bands, found %d", m.ONNX, ErrContract, bands)
	}
	n, ok := g.Metadata["normalize_type"]
	normalize = !ok || n == "per_feature"
	if !normalize && n != "" && !strings.EqualFold(n, "NA") && !strings.EqualFold(n, "none") {
		return nil, false, fmt.Errorf("%s: %w: metadata normalize_type: expected per_feature or NA, found %.40q", m.ONNX, ErrContract, n)
	}
	return dsp.NewNeMoMel(bands), normalize, nil
}

// features returns frames × bands, already laid out as [bands, T].
func (f *nemoFront) features(samples []float32) matrix {
	bands, n := f.mel.Bands(), f.mel.Frames(len(samples))
	rows := make([]float32, n*bands)
	f.mel.Compute(rows, samples)
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

// nemoCTC implements NeMo's CTC models, branches of hybrids, and GigaAM's.
// Exports lack their convolutions' masks, so windows run one by one, unpadded.
type nemoCTC struct {
	nemoFront
	ctcGraph
}

func openNeMo(m parts, g *ort.Graph, vocab *vocabulary, opt ort.Options) (network, error) {
	front, err := openNeMoFront(m, g)
	if err != nil {
		return nil, err
	}
	name := alias(g.Output, "logprobs", "log_probs")
	if err := check(g, nil, float(name, -1, -1, -1)); err != nil {
		return nil, err
	}
	if err := checkWidth(g, m.ONNX, name, vocab); err != nil {
		return nil, err
	}
	n := &nemoCTC{nemoFront: front, ctcGraph: ctcGraph{
		single: single{source: m.ONNX}, out: name, head: head{vocab: vocab, blank: nemoBlank(vocab), shift: front.shift()},
	}}
	return n, n.open(opt, name)
}

func (n *nemoCTC) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	w := windows[0]
	out, err := n.session.Run(ctx, n.inputs(w), n.out)
	if err != nil {
		return nil, err
	}
	// The graph returns no lengths; the subsampling gives the real rows.
	return n.decodeRows(out[0], []int64{int64((w.frames-1)/n.subsampling + 1)}, 1, req)
}

// giga reports whether a model is GigaAM: a NeMo model on other features.
func giga(contract string, g *ort.Graph) bool {
	return contract == models.ContractGigaAMCTC || contract == models.ContractGigaAMTransducer || g.Metadata["is_giga_am"] == "1" ||
		has(g.Input, "features", "feature_lengths") || has(g.Output, "encoded", "encoded_len")
}

// gigaMel returns the 64 log-mel bands of one of GigaAM's two versions.
func gigaMel(m parts, g *ort.Graph, c nemoConfig) (*dsp.Extractor, error) {
	version, err := gigaVersion(m, g, c)
	return dsp.NewGigaAMMel(version), err
}

// gigaVersion returns 2 for the features of versions 1 and 2, or 3. It reads
// the metadata of sherpa-onnx's files (version 3 has a comment that names it),
// then the model_type of onnx-asr's config.json, then the file's name.
func gigaVersion(m parts, g *ort.Graph, c nemoConfig) (int, error) {
	if g.Metadata["is_giga_am"] == "1" {
		if strings.HasPrefix(g.Metadata["comment"], "v3") {
			return 3, nil
		}
		return 2, nil
	}
	for _, name := range []string{c.ModelType, filepath.Base(m.ONNX.Path), m.ONNX.Name, m.Name} {
		switch {
		case strings.Contains(name, "v3"):
			return 3, nil
		case strings.Contains(name, "v2"):
			return 2, nil
		}
	}
	return 0, fmt.Errorf("%s: %w: expected GigaAM v2 or v3 in the metadata, in model_type of config.json or in the file's name, found neither", m.ONNX, ErrContract)
}
