package onnx

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
)

const (
	// icefallMost is the maximum number of tokens per frame: icefall trains for
	// one and decodes one (--max-sym-per-frame 1).
	icefallMost = 1
	// icefallContext is the decoder's context if the file does not declare it.
	icefallContext = 2
	// beforeText is the decoder's input for a token before the text.
	beforeText = -1
)

// icefall is a transducer of icefall (Zipformer, Conformer) in k2-fsa's export:
// an encoder x, x_lens → encoder_out, encoder_out_lens, or a streaming one; a
// decoder without state y → decoder_out, which reads only the last tokens; a
// joiner encoder_out, decoder_out → logit.
type icefall struct {
	searcher
	sessions
	fbank         *dsp.Extractor
	lens, targets ort.Info
	context       int
	// unknown is the id of <unk>, which counts as blank; -1 without one.
	unknown int
}

func openIcefall(m parts, g *checker, vocab *vocabulary) (network, error) {
	o := dsp.DefaultFbankOptions()
	o.SnipEdges, o.HighHz = false, -400
	t := &icefall{fbank: dsp.NewFbank(o), unknown: slices.Index(vocab.symbols, "<unk>")}
	t.searcher = searcher{vocab: vocab, blank: g.blank(vocab, "<blk>, <blank> or <eps>"), most: icefallMost, seconds: 0.04, joint: m.Joiner}
	t.begin = func() predictor { return &contextPredictor{t: t, tokens: t.beginning()} }
	outputs := []string{"encoder_out", "encoder_out_lens"}
	if has(g.Input, "x_lens") || !has(g.Output, outputs[0]) {
		inputs := []ort.Info{float("x", -1, -1, 80), {Name: "x_lens"}}
		g.ports(inputs, float(outputs[0], -1, -1, -1), ort.Info{Name: outputs[1]})
		t.lens, t.batch = g.integer("x_lens", 1), !g.oneAtATime("x")
	} else {
		t.chunks = g.chunks(&chunks{frames: "x", outputs: outputs[:1]}, 80, "T", "decode_chunk_len", func(state string) string { return "new_" + state })
		outputs = t.chunks.outputs
	}
	if !present(m.Decoder) || !present(m.Joiner) {
		g.fail(ErrFile, "a transducer needs its decoder and joiner next to the encoder")
	}
	if g.err != nil {
		return nil, g.err
	}
	if err := t.checkDecoder(m); err != nil {
		return nil, err
	}
	return t, t.open(m, g, outputs...)
}

// checkDecoder compares the decoder's and joiner's ports with the contract.
func (t *icefall) checkDecoder(m parts) error {
	d, j := inspected(m.Decoder), inspected(m.Joiner)
	t.targets = d.integer("y", 2)
	d.ports([]ort.Info{{Name: "y"}}, float("decoder_out", -1, -1))
	t.context = icefallContext
	if t.targets.Rank() == 2 && t.targets.Shape[1] > 0 {
		t.context = int(t.targets.Shape[1])
	}
	t.context = d.number("context_size", t.context, 1, 16)
	j.ports([]ort.Info{float("encoder_out", -1, -1), float("decoder_out", -1, -1)}, float("logit", -1, -1))
	j.width("logit", t.vocab)
	return cmp.Or(d.err, j.err)
}

func (t *icefall) features(samples []float32) matrix {
	if t.chunks != nil {
		return t.chunks.features(t.fbank, samples)
	}
	return fbankMatrix(t.fbank, samples)
}

func (t *icefall) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	list, err := t.encode(ctx, windows, req)
	if err != nil {
		return nil, err
	}
	hyps := make([]hypothesis, len(list))
	for i, frames := range list {
		if hyps[i].emissions, hyps[i].steps, err = t.search(ctx, frames, req); err != nil {
			return nil, err
		}
	}
	return hyps, nil
}

// encode returns the encoder's frames of each window.
func (t *icefall) encode(ctx context.Context, windows []matrix, req request) ([]encoded, error) {
	if t.chunks != nil {
		frames, err := t.chunks.run(ctx, t.encoder, windows[0], req.draft)
		return []encoded{frames}, err
	}
	out, err := t.encoder.Run(ctx, map[string]*ort.Tensor{
		"x": pad(windows, zipformerPadding), "x_lens": ort.NewIntegers(t.lens, frameCounts(windows)),
	}, "encoder_out", "encoder_out_lens")
	if err != nil {
		return nil, err
	}
	s, n := out[0].Shape(), out[1].Integers()
	if len(s) != 3 || s[0] != int64(len(windows)) || len(n) != len(windows) {
		return nil, fmt.Errorf("%s: %w: expected encoder_out float32[%d,?,?] and as many lengths, found %v and %d lengths", t.source, ErrContract, len(windows), s, len(n))
	}
	rows, dim := int(s[1]), int(s[2])
	list := make([]encoded, len(windows))
	for i := range list {
		list[i] = encoded{data: out[0].Float32()[i*rows*dim:], dim: dim, stride: 1, step: dim, n: min(max(int(n[i]), 0), rows)}
	}
	return list, nil
}

// beginning returns the decoder's input before a text: the blank after
// beforeText (icefall, greedy_search in beam_search.py).
func (t *icefall) beginning() []int {
	return append(slices.Repeat([]int{beforeText}, t.context-1), t.blank)
}

// contextPredictor is a prediction network that reads only the last tokens.
type contextPredictor struct {
	t      *icefall
	tokens []int
	output *ort.Tensor // the decoder's output, nil before the first frame
}

func (p *contextPredictor) score(ctx context.Context, frame []float32) ([]float32, error) {
	t := p.t
	if p.output == nil {
		y := ort.NewIntegers(t.targets, p.tokens, 1, int64(len(p.tokens)))
		out, err := t.decoder.Run(ctx, map[string]*ort.Tensor{"y": y}, "decoder_out")
		if err != nil {
			return nil, err
		}
		p.output = out[0]
	}
	enc := ort.NewFloat32([]int64{1, int64(len(frame))}, frame)
	out, err := t.joiner.Run(ctx, map[string]*ort.Tensor{"encoder_out": enc, "decoder_out": p.output}, "logit")
	if err != nil {
		return nil, err
	}
	scores := out[0].Float32()
	if len(scores) != t.vocab.size() {
		return nil, widthError(t.joint, "logit", len(scores), t.vocab)
	}
	if t.unknown >= 0 && t.unknown != t.blank {
		scores[t.blank] = max(scores[t.blank], scores[t.unknown])
		scores[t.unknown] = float32(math.Inf(-1))
	}
	return scores, nil
}

func (p *contextPredictor) after(token int) predictor {
	return &contextPredictor{t: p.t, tokens: append(slices.Clone(p.tokens[1:]), token)}
}
