package onnx

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/internal/ort"
)

// mostPerFrame is how many tokens one frame of a NeMo transducer may emit.
const mostPerFrame = 10

// transducer is NeMo's RNN-T and TDT (Parakeet), as three files (encoder,
// decoder, joiner) or two (encoder, decoder_joint).
type transducer struct {
	nemoFront
	searcher
	encoder, decoder, joiner *ort.Session // joiner nil: the decoder holds it
	source                   ort.Source
	states                   [2]ort.Info // the decoder's
	statesOut                [2]string
	targets, targetLength    ort.Info
	joinEncoder, joinDecoder string
}

func openTransducer(m parts, g *ort.Graph, vocab *vocabulary, opt ort.Options) (network, error) {
	front, err := openNeMoFront(m, g)
	if err != nil {
		return nil, err
	}
	t := &transducer{nemoFront: front, source: m.ONNX}
	t.searcher = searcher{vocab: vocab, blank: nemoBlank(vocab), most: mostPerFrame, seconds: front.shift(), joint: m.Decoder, begin: t.predictor}
	if err := g.Check(ort.Contract{
		Outputs: []ort.Info{{Name: "outputs", Type: ort.Float32, Shape: []int64{-1, -1, -1}}, {Name: "encoded_lengths"}},
	}); err != nil {
		return nil, err
	}
	if !present(m.Decoder) {
		return nil, fmt.Errorf("%s: %w: a transducer needs its decoder and joiner (or decoder_joint) next to the encoder, found none", m.ONNX, ErrFile)
	}
	if err := t.checkDecoder(m); err != nil {
		return nil, err
	}
	if t.encoder, err = ort.Open(m.ONNX, withOutputs(opt, "outputs", "encoded_lengths")); err != nil {
		return nil, err
	}
	if t.decoder, err = ort.Open(m.Decoder, opt); err != nil {
		return nil, closing(t, err)
	}
	if present(m.Joiner) {
		if t.joiner, err = ort.Open(m.Joiner, opt); err != nil {
			return nil, closing(t, err)
		}
	}
	return t, nil
}

// present reports whether there is a graph.
func present(s ort.Source) bool { return s.Path != "" || s.Data != nil }

// nameParts gives the graphs of a transducer beside its encoder the encoder's role
// and a name, for errors.
func nameParts(m *parts) {
	for i, s := range []*ort.Source{&m.Decoder, &m.Joiner} {
		if s.Role == "" {
			s.Role = m.ONNX.Role
		}
		if s.Name == "" && s.Path == "" {
			s.Name = m.ONNX.Name + [...]string{" (decoder)", " (joiner)"}[i]
		}
	}
}

// closeAll closes the sessions that were opened and returns the first error.
func closeAll(sessions ...*ort.Session) error {
	var first error
	for _, s := range sessions {
		if s == nil {
			continue
		}
		if err := s.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func closing(t *transducer, err error) error {
	_ = t.close()
	return err
}

// checkDecoder compares the decoder's and joiner's ports with both layouts.
func (t *transducer) checkDecoder(m parts) error {
	g, err := ort.Inspect(m.Decoder)
	if err != nil {
		return err
	}
	joint := hasInputs(g, "encoder_outputs")
	split := present(m.Joiner)
	if joint == split {
		found := "a decoder without encoder_outputs and no joiner"
		if joint {
			found = "a decoder_joint and a joiner"
		}
		return fmt.Errorf("%s: %w: expected decoder and joiner, or decoder_joint alone, found %s (it has %s)", m.Decoder, ErrContract, found, g.IOList())
	}
	var outs []ort.Info
	for _, o := range g.Outputs {
		if o.Name != "outputs" && o.Name != "prednet_lengths" {
			outs = append(outs, o)
		}
	}
	var states []ort.Info
	for _, in := range g.Inputs {
		if in.Name != "encoder_outputs" && in.Name != "targets" && in.Name != "target_length" {
			states = append(states, in)
		}
	}
	if t.targets, err = checkTargets(g, m.Decoder, "targets", 2); err != nil {
		return err
	}
	if t.targetLength, err = checkTargets(g, m.Decoder, "target_length", 1); err != nil {
		return err
	}
	if len(states) != 2 || len(outs) != 2 || !hasOutputs(g, "outputs") {
		return fmt.Errorf("%s: %w: expected two state inputs and two state outputs beside outputs (it has %s)", m.Decoder, ErrContract, g.IOList())
	}
	for i, s := range states {
		if s.Type != ort.Float32 || s.Rank() != 3 {
			return fmt.Errorf("%s: %w: expected state input %s float32[?,?,?], found %s", m.Decoder, ErrContract, s.Name, s)
		}
		t.states[i], t.statesOut[i] = s, outs[i].Name
		// Layers and width: the published files of two layers of 640 where neither
		// shape nor metadata say otherwise.
		for axis, key := range map[int]string{0: "pred_rnn_layers", 2: "pred_hidden"} {
			if s.Shape[axis] > 0 {
				continue
			}
			eg, err := ort.Inspect(m.ONNX)
			if err != nil {
				return err
			}
			n, err := metaInt(eg, m.ONNX, key, map[int]int{0: 2, 2: 640}[axis], 1, 1<<14)
			if err != nil {
				return err
			}
			t.states[i].Shape[axis] = int64(n)
		}
	}
	if !split {
		return nil
	}
	j, err := ort.Inspect(m.Joiner)
	if err != nil {
		return err
	}
	t.joinEncoder, t.joinDecoder = "encoder_outputs", "decoder_outputs"
	return j.Check(ort.Contract{
		Inputs:  []ort.Info{{Name: t.joinEncoder, Type: ort.Float32, Shape: []int64{-1, -1, -1}}, {Name: t.joinDecoder, Type: ort.Float32, Shape: []int64{-1, -1, -1}}},
		Outputs: []ort.Info{{Name: "outputs", Type: ort.Float32}}, Exact: true,
	})
}

func checkTargets(g *ort.Graph, source ort.Source, name string, rank int) (ort.Info, error) {
	in, ok := g.Input(name)
	if !ok || (in.Type != ort.Int32 && in.Type != ort.Int64) || (in.Rank() >= 0 && in.Rank() != rank) {
		return in, fmt.Errorf("%s: %w: expected input %s int32 or int64 of rank %d (it has %s)", source, ErrContract, name, rank, g.IOList())
	}
	return in, nil
}

func (t *transducer) batchable() bool     { return false }
func (t *transducer) languages() []string { return nil }

func (t *transducer) ctc() *head { return nil }

func (t *transducer) close() error { return closeAll(t.encoder, t.decoder, t.joiner) }

func (t *transducer) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	hyps := make([]hypothesis, len(windows))
	for i, w := range windows {
		out, err := t.encoder.Run(ctx, t.inputs(w), "outputs", "encoded_lengths")
		if err != nil {
			return nil, err
		}
		s := out[0].Shape()
		n := out[1].Integers()
		if len(s) != 3 || s[0] != 1 || len(n) != 1 {
			return nil, fmt.Errorf("%s: %w: expected outputs float32[1,?,?] and one length, found %v and %d lengths", t.source, ErrContract, s, len(n))
		}
		frames := encoded{data: out[0].Float32(), dim: int(s[1]), stride: int(s[2]), step: 1, n: int(min(max(n[0], 0), s[2]))}
		if hyps[i].emissions, hyps[i].steps, err = t.search(ctx, frames, req); err != nil {
			return nil, err
		}
	}
	return hyps, nil
}

// statePredictor is the state of NeMo's prediction network after a text.
type statePredictor struct {
	t      *transducer
	last   int
	states [2]*ort.Tensor
	output *ort.Tensor // of the separate decoder, for the last token
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

func (t *transducer) integer(in ort.Info, v int, shape ...int64) *ort.Tensor {
	if in.Type == ort.Int64 {
		return ort.NewInt64(shape, []int64{int64(v)})
	}
	return ort.NewInt32(shape, []int32{int32(v)})
}

func (p *statePredictor) score(ctx context.Context, frame []float32) ([]float32, error) {
	t := p.t
	enc := ort.NewFloat32([]int64{1, int64(len(frame)), 1}, frame)
	if t.joiner == nil || p.output == nil {
		in := map[string]*ort.Tensor{
			"targets": t.integer(t.targets, p.last, 1, 1), "target_length": t.integer(t.targetLength, 1, 1),
			t.states[0].Name: p.states[0], t.states[1].Name: p.states[1],
		}
		if t.joiner == nil {
			in["encoder_outputs"] = enc
		}
		out, err := t.decoder.Run(ctx, in, "outputs", t.statesOut[0], t.statesOut[1])
		if err != nil {
			return nil, err
		}
		p.next = [2]*ort.Tensor{out[1], out[2]}
		if t.joiner == nil {
			return out[0].Float32(), nil
		}
		p.output = out[0]
	}
	out, err := t.joiner.Run(ctx, map[string]*ort.Tensor{t.joinEncoder: enc, t.joinDecoder: p.output}, "outputs")
	if err != nil {
		return nil, err
	}
	return out[0].Float32(), nil
}

func (p *statePredictor) after(token int) predictor {
	return &statePredictor{t: p.t, last: token, states: p.next}
}
