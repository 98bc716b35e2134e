package onnx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/engine/ort"
)

// mostPerFrame is the maximum number of tokens per frame of a NeMo transducer
// if onnx-asr's config.json does not state it; mostPerGigaFrame is GigaAM's.
const (
	mostPerFrame     = 10
	mostPerGigaFrame = 3
)

// ports are the names of the inputs and outputs of a transducer's graphs.
type ports struct {
	encoded, lengths                         string // of the encoder
	targets, targetLength, output, lengthOut string // of the decoder
	joinEncoder, joinDecoder, joined         string // of the joiner
}

var (
	nemoPorts = ports{
		"outputs", "encoded_lengths", "targets", "target_length", "outputs", "prednet_lengths",
		"encoder_outputs", "decoder_outputs", "outputs",
	}
	// In onnx-asr's files, GigaAM's decoder takes no length.
	gigaPorts = ports{"encoded", "encoded_len", "x", "unused_x_len.1", "dec", "unused_x_len", "enc", "dec", "joint"}
)

// transducer implements NeMo's RNN-T and TDT (Parakeet) in three files (encoder,
// decoder, joiner) or two (encoder, decoder_joint), and GigaAM's RNN-T.
type transducer struct {
	nemoFront
	searcher
	sessions
	ports
	states         [2]ort.Info // the decoder's
	statesOut      [2]string
	target, length ort.Info // length is unnamed if the decoder takes none
}

func openTransducer(m parts, g *checker, vocab *vocabulary) (network, error) {
	caches := slices.DeleteFunc(slices.Clone(g.Inputs), func(p ort.Info) bool { return !strings.HasPrefix(p.Name, "cache_") })
	front := openNeMoFront(m, g, caches...)
	t := &transducer{nemoFront: front, ports: nemoPorts}
	most := mostPerFrame
	if giga(m.Contract, g) {
		t.ports, most = gigaPorts, mostPerGigaFrame
	}
	t.searcher = searcher{
		vocab: vocab, blank: nemoBlank(vocab), most: cmp.Or(front.config.MostPerStep, most),
		seconds: front.shift(), joint: m.Decoder, begin: t.predictor,
	}
	outputs := []string{t.encoded, t.lengths}
	g.ports(nil, float(t.encoded, -1, -1, -1), ort.Info{Name: t.lengths})
	if len(caches) > 0 {
		t.chunks = front.nemoChunks(g, t.encoded)
		outputs = t.chunks.outputs
	}
	if !present(m.Decoder) {
		g.fail(ErrFile, "a transducer needs its decoder and joiner (or decoder_joint) next to the encoder, found none")
	}
	if g.err != nil {
		return nil, g.err
	}
	if err := t.checkDecoder(m, g); err != nil {
		return nil, err
	}
	return t, t.open(m, g, outputs...)
}

func present(s ort.Source) bool { return s.Path != "" || s.Data != nil }

// sessions are a model's graphs: the only one or the encoder; decoder and joiner
// are nil if it has none.
type sessions struct {
	encoder, decoder, joiner *ort.Session
	frontend, adapter        *ort.Session // of a streaming Moonshine, else nil
	chunks                   *chunks      // of a streaming encoder, else nil
	source                   ort.Source   // of the encoder
	batch                    bool         // several windows may share a run
}

// open opens the graphs, unless g has an error; outputs are the encoder's.
func (s *sessions) open(m parts, g *checker, outputs ...string) error {
	if g.err != nil {
		return g.err
	}
	s.source = m.ONNX
	var err error
	if s.encoder, err = ort.Open(m.ONNX, ort.Options{Outputs: outputs}); err == nil && present(m.Decoder) {
		s.decoder, err = ort.Open(m.Decoder, ort.Options{})
	}
	if err == nil && present(m.Joiner) {
		s.joiner, err = ort.Open(m.Joiner, ort.Options{})
	}
	if err != nil {
		_ = s.close()
	}
	return err
}

func (s *sessions) close() error {
	var errs []error
	for _, open := range []*ort.Session{s.encoder, s.decoder, s.joiner, s.frontend, s.adapter} {
		if open != nil {
			errs = append(errs, open.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *sessions) batchable() bool   { return s.batch }
func (s *sessions) chunked() *chunks  { return s.chunks }
func (*sessions) languages() []string { return nil }
func (*sessions) ctc() *head          { return nil }

// without returns the ports with other names.
func without(ports []ort.Info, names ...string) []ort.Info {
	return slices.DeleteFunc(slices.Clone(ports), func(p ort.Info) bool { return slices.Contains(names, p.Name) })
}

// checkDecoder compares the decoder's and joiner's ports with both layouts.
func (t *transducer) checkDecoder(m parts, encoder *checker) error {
	g := inspected(m.Decoder)
	joint := has(g.Input, t.joinEncoder)
	split := present(m.Joiner)
	if joint == split {
		found := "a decoder without " + t.joinEncoder + " and no joiner"
		if joint {
			found = "a decoder_joint and a joiner"
		}
		g.fail(ErrContract, "expected decoder and joiner, or decoder_joint alone, found %s (it has %s)", found, g.IOList())
	}
	outs := without(g.Outputs, t.output, t.lengthOut)
	states := without(g.Inputs, t.joinEncoder, t.targets, t.targetLength)
	t.target = g.integer(t.targets, 2)
	if t.ports == nemoPorts || has(g.Input, t.targetLength) {
		t.length = g.integer(t.targetLength, 1)
	}
	if len(states) != 2 || len(outs) != 2 || !has(g.Output, t.output) {
		g.fail(ErrContract, "expected two state inputs and two state outputs beside %s (it has %s)", t.output, g.IOList())
		return g.err
	}
	for i, s := range states {
		if s.Type != ort.Float32 || s.Rank() != 3 {
			g.fail(ErrContract, "expected state input %s float32[?,?,?], found %s", s.Name, s)
			return g.err
		}
		t.states[i], t.statesOut[i] = s, outs[i].Name
		// The published files have two layers of 640, the default if neither
		// shape nor metadata state otherwise.
		for axis, size := range map[int]int{
			0: encoder.number("pred_rnn_layers", 2, 1, 1<<14), 2: encoder.number("pred_hidden", 640, 1, 1<<14),
		} {
			if s.Shape[axis] <= 0 {
				t.states[i].Shape[axis] = int64(size)
			}
		}
	}
	var j checker
	if split {
		j = *inspected(m.Joiner)
		j.ports([]ort.Info{float(t.joinEncoder, -1, -1, -1), float(t.joinDecoder, -1, -1, -1)}, float(t.joined))
	}
	return cmp.Or(g.err, encoder.err, j.err)
}

func (t *transducer) features(samples []float32) matrix {
	if t.chunks != nil {
		return t.chunks.features(t.mel, samples)
	}
	return t.nemoFront.features(samples)
}

func (t *transducer) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	frames, err := t.encode(ctx, windows[0], req)
	if err != nil {
		return nil, err
	}
	hyps := make([]hypothesis, 1)
	hyps[0].emissions, hyps[0].steps, err = t.search(ctx, frames, req)
	return hyps, err
}

// encode returns the encoder's frames of a window.
func (t *transducer) encode(ctx context.Context, w matrix, req request) (frames encoded, err error) {
	if t.chunks != nil {
		return t.chunks.run(ctx, t.encoder, w, req.draft)
	}
	out, err := t.encoder.Run(ctx, t.inputs(w), t.encoded, t.lengths)
	if err != nil {
		return frames, err
	}
	s, n := out[0].Shape(), out[1].Integers()
	if len(s) != 3 || s[0] != 1 || len(n) != 1 {
		return frames, fmt.Errorf("%s: %w: expected %s float32[1,?,?] and one length, found %v and %d lengths", t.source, ErrContract, t.encoded, s, len(n))
	}
	return encoded{data: out[0].Float32(), dim: int(s[1]), stride: int(s[2]), step: 1, n: int(min(max(n[0], 0), s[2]))}, nil
}

// statePredictor is the state of NeMo's prediction network after a text.
type statePredictor struct {
	t      *transducer
	last   int
	states [2]*ort.Tensor
	output *ort.Tensor // the separate decoder's output for the last token
	next   [2]*ort.Tensor
}

// predictor returns the state before a text.
func (t *transducer) predictor() predictor {
	p := &statePredictor{t: t, last: t.blank}
	for i, s := range t.states {
		p.states[i] = ort.NewFloat32([]int64{s.Shape[0], 1, s.Shape[2]}, make([]float32, s.Shape[0]*s.Shape[2]))
	}
	return p
}

func (p *statePredictor) score(ctx context.Context, frame []float32) ([]float32, error) {
	t := p.t
	enc := ort.NewFloat32([]int64{1, int64(len(frame)), 1}, frame)
	if t.joiner == nil || p.output == nil {
		in := map[string]*ort.Tensor{
			t.targets: ort.NewIntegers(t.target, []int{p.last}, 1, 1), t.states[0].Name: p.states[0], t.states[1].Name: p.states[1],
		}
		if t.length.Name != "" {
			in[t.targetLength] = ort.NewIntegers(t.length, []int{1})
		}
		if t.joiner == nil {
			in[t.joinEncoder] = enc
		}
		out, err := t.decoder.Run(ctx, in, t.output, t.statesOut[0], t.statesOut[1])
		if err != nil {
			return nil, err
		}
		p.next = [2]*ort.Tensor{out[1], out[2]}
		if t.joiner == nil {
			return out[0].Float32(), nil
		}
		// GigaAM's decoder orders the axes differently from onnx-asr's files.
		dec := out[0].Float32()
		p.output = ort.NewFloat32([]int64{1, int64(len(dec)), 1}, dec)
	}
	out, err := t.joiner.Run(ctx, map[string]*ort.Tensor{t.joinEncoder: enc, t.joinDecoder: p.output}, t.joined)
	if err != nil {
		return nil, err
	}
	return out[0].Float32(), nil
}

func (p *statePredictor) after(token int) predictor {
	return &statePredictor{t: p.t, last: token, states: p.next}
}
