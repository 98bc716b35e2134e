package onnx

import (
	"cmp"
	"context"
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

// openNeMoFront checks the inputs: sound, length, and the encoder's caches.
func openNeMoFront(m parts, g *checker, caches ...ort.Info) (f nemoFront) {
	f.config = g.config(m.Config)
	subsampling := 8
	if giga(m.Contract, g) {
		f.signal, f.length = alias(g.Input, "features", "audio_signal"), alias(g.Input, "feature_lengths", "length")
		subsampling = 4
		f.mel = dsp.NewGigaAMMel(gigaVersion(m, g, f.config))
	} else {
		f.signal, f.length = "audio_signal", "length"
		f.mel, f.normalize = nemoMel(g, f.config)
	}
	g.ports(append(caches, float(f.signal, -1, int64(f.mel.Bands()), -1), ort.Info{Name: f.length}))
	f.lens = g.integer(f.length, 1)
	f.subsampling = g.number("subsampling_factor", cmp.Or(f.config.Subsampling, subsampling), 1, 64)
	return f
}

// nemoMel returns a NeMo model's log-mel bands, and whether to normalize them.
func nemoMel(g *checker, c nemoConfig) (mel *dsp.Extractor, normalize bool) {
	bands := cmp.Or(c.Features, 80)
	if in, _ := g.Input("audio_signal"); in.Rank() == 3 && in.Shape[1] > 0 {
		bands = int(in.Shape[1])
	}
	if bands = g.number("feat_dim", bands, 1, 512); bands != 64 && bands != 80 && bands != 128 {
		g.fail(ErrContract, "expected 64, 80 or 128 mel bands, found %d", bands)
		bands = 80
	}
	n, ok := g.Metadata["normalize_type"]
	normalize = !ok || n == "per_feature"
	if !normalize && n != "" && !strings.EqualFold(n, "NA") && !strings.EqualFold(n, "none") {
		g.fail(ErrContract, "metadata normalize_type: expected per_feature or NA, found %.40q", n)
	}
	return dsp.NewNeMoMel(bands), normalize
}

// features returns frames × bands, already laid out as [bands, T].
func (f *nemoFront) features(samples []float32) matrix {
	m := fbankMatrix(f.mel, samples)
	if f.normalize {
		dsp.NormalizePerFeature(m.data, m.frames, m.dim)
	}
	m.data = turned(m.data, m.frames, m.dim)
	return m
}

// nemoChunks reads the layout of a cache-aware encoder, whose caches are its states.
func (f *nemoFront) nemoChunks(g *checker, output string) *chunks {
	if f.normalize {
		g.fail(ErrContract, "metadata normalize_type: expected NA for an encoder that reads chunks, found %q", g.Metadata["normalize_type"])
	}
	k := &chunks{frames: f.signal, length: f.lens, turned: true, outputs: []string{output}}
	return g.chunks(k, f.mel.Bands(), "window_size", "chunk_shift", func(state string) string {
		if stem, ok := strings.CutSuffix(state, "_len"); ok {
			return stem + "_next_len"
		}
		return state + "_next"
	})
}

func (f *nemoFront) inputs(w matrix) map[string]*ort.Tensor {
	return map[string]*ort.Tensor{
		f.signal: ort.NewFloat32([]int64{1, int64(w.dim), int64(w.frames)}, w.data),
		f.length: ort.NewIntegers(f.lens, []int{w.frames}),
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

func openNeMo(m parts, g *checker, vocab *vocabulary) (network, error) {
	front := openNeMoFront(m, g)
	name := alias(g.Output, "logprobs", "log_probs")
	g.ports(nil, float(name, -1, -1, -1))
	g.width(name, vocab)
	n := &nemoCTC{nemoFront: front, ctcGraph: ctcGraph{
		out: name, head: head{vocab: vocab, blank: nemoBlank(vocab), shift: front.shift()},
	}}
	return n, n.open(m, g, name)
}

func (n *nemoCTC) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	w := windows[0]
	out, err := n.encoder.Run(ctx, n.inputs(w), n.out)
	if err != nil {
		return nil, err
	}
	// The graph returns no lengths; the subsampling gives the real rows.
	return n.decodeRows(out[0], []int64{int64((w.frames-1)/n.subsampling + 1)}, 1, req)
}

// giga reports whether a model is GigaAM: a NeMo model on other features.
func giga(contract string, g *checker) bool {
	return contract == models.ContractGigaAMCTC || contract == models.ContractGigaAMTransducer || g.Metadata["is_giga_am"] == "1" ||
		has(g.Input, "features", "feature_lengths") || has(g.Output, "encoded", "encoded_len")
}

// gigaVersion returns 2 for the features of versions 1 and 2, or 3. It reads
// the metadata of sherpa-onnx's files (version 3 has a comment that names it),
// then the model_type of onnx-asr's config.json, then the file's name.
func gigaVersion(m parts, g *checker, c nemoConfig) int {
	if g.Metadata["is_giga_am"] == "1" {
		if strings.HasPrefix(g.Metadata["comment"], "v3") {
			return 3
		}
		return 2
	}
	for _, name := range []string{c.ModelType, filepath.Base(m.ONNX.Path), m.ONNX.Name, m.Name} {
		switch {
		case strings.Contains(name, "v3"):
			return 3
		case strings.Contains(name, "v2"):
			return 2
		}
	}
	g.fail(ErrContract, "expected GigaAM v2 or v3 in the metadata, in model_type of config.json or in the file's name, found neither")
	return 2
}
