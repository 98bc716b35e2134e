package onnx

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
)

// waveform implements CTC models on samples: wav2vec 2.0, HuBERT, MMS and
// Omnilingual ASR. Their first layer is a convolution over the whole input, so
// windows run one by one, without padding.
type waveform struct {
	ctcGraph
	in     string
	mask   string // input of ones, "" without
	length string // input of the number of samples, "" without
	lens   ort.Info
	// normalize reports whether samples get mean 0 and variance 1.
	normalize bool
}

// waveformStride is the number of samples per output row.
const waveformStride = 320

// waveformSlack is the permitted difference between an output's number of rows
// and the number of strides: the first convolution has an edge.
const waveformSlack = 3

func openWaveform(m parts, g *checker, vocab *vocabulary) (network, error) {
	w := &waveform{ctcGraph: ctcGraph{out: "logits"}, in: "input_values"}
	if len(g.Inputs) == 1 {
		w.in = g.Inputs[0].Name
	}
	w.normalize = g.normalizes(m.Config)
	inputs := []ort.Info{float(w.in, -1, -1)}
	if has(g.Input, "attention_mask") {
		w.mask = "attention_mask"
		inputs = append(inputs, ort.Info{Name: w.mask})
		w.lens = g.integer(w.mask, 2)
	}
	if has(g.Input, "input_lengths") {
		// In onnx-asr's layout, the graph normalizes and takes the logarithm.
		w.length, w.out, w.normalize = "input_lengths", "logprobs", false
		inputs = append(inputs, ort.Info{Name: w.length})
		w.lens = g.integer(w.length, 1)
	}
	g.ports(inputs, float(w.out, -1, -1, -1))
	g.width(w.out, vocab)
	w.head = head{vocab: vocab, blank: g.blank(vocab, "<pad>, [PAD], <blk> or <s> with id 0"), shift: waveformStride / float64(audio.SampleRate), logits: w.length == ""}
	return w, w.open(m, g, w.out)
}

// normalizes reads from transformers' preprocessor_config.json whether samples
// are normalized. The default is true.
func (c *checker) normalizes(f sideFile) bool {
	if len(f.Data) == 0 {
		return true
	}
	o := struct {
		Rate      int   `json:"sampling_rate"`
		Normalize *bool `json:"do_normalize"`
	}{Rate: audio.SampleRate}
	if err := json.Unmarshal(f.Data, &o); err != nil {
		c.fail(ErrFile, "%s: expected the JSON object of a feature extractor: %w", f.Name, err)
	}
	if o.Rate != audio.SampleRate {
		c.fail(ErrFile, "%s: sampling_rate: expected %d, found %d", f.Name, audio.SampleRate, o.Rate)
	}
	return o.Normalize == nil || *o.Normalize
}

func (w *waveform) features(samples []float32) matrix {
	m := matrix{data: slices.Clone(samples), frames: 1, dim: len(samples)}
	if w.normalize {
		normalizeSamples(m.data)
	}
	return m
}

// normalizeSamples normalizes samples to mean 0 and variance 1.
func normalizeSamples(x []float32) {
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(max(len(x), 1))
	for _, v := range x {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	scale := 1 / math.Sqrt(squares/float64(max(len(x), 1))+1e-7)
	for i, v := range x {
		x[i] = float32((float64(v) - mean) * scale)
	}
}

func (w *waveform) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	samples := windows[0].data
	shape := []int64{1, int64(len(samples))}
	in := map[string]*ort.Tensor{w.in: ort.NewFloat32(shape, samples)}
	if w.mask != "" {
		in[w.mask] = ort.NewIntegers(w.lens, slices.Repeat([]int{1}, len(samples)), shape...)
	}
	if w.length != "" {
		in[w.length] = ort.NewIntegers(w.lens, []int{len(samples)})
	}
	out, err := w.encoder.Run(ctx, in, w.out)
	if err != nil {
		return nil, err
	}
	rows := 0
	if s := out[0].Shape(); len(s) == 3 {
		rows = int(s[1])
	}
	if want := len(samples) / waveformStride; rows < want-waveformSlack || rows > want+waveformSlack {
		return nil, fmt.Errorf("%s: %w: output %s: expected a row for each %d samples, %d for %d samples, found %d",
			w.source, ErrContract, w.out, waveformStride, want, len(samples), rows)
	}
	return w.decodeRows(out[0], []int64{int64(rows)}, 1, req)
}
