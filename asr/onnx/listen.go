package onnx

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/internal/engine/decode"
)

// ErrNoRows is returned by Listen for a model without a CTC output.
var ErrNoRows = errors.New("the model has no CTC output to align with")

// Vocabulary returns the texts of the model's tokens. For a model without a CTC
// output, the error wraps ErrNoRows.
func (e *Engine) Vocabulary() (align.Vocabulary, error) {
	h := e.net.ctc()
	if h == nil {
		return align.Vocabulary{}, fmt.Errorf("%s: %w", e.name, ErrNoRows)
	}
	texts := make([]string, len(e.vocab.text))
	for id, b := range e.vocab.text {
		texts[id] = string(b)
	}
	return align.Vocabulary{Tokens: texts, Blank: h.blank}, nil
}

// tokens returns a CTC output's vocabulary, nil for a model without one.
func (e *Engine) tokens() *ctc.Vocabulary {
	v, err := e.Vocabulary()
	if err != nil {
		return nil
	}
	return ctc.NewVocabulary(v.Tokens, v.Blank)
}

// Listen decodes as Transcribe does and returns, window by window, the model's
// log posteriors and the recognized words. It implements align.Model.
func (e *Engine) Listen(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) ([]align.Recognition, error) {
	h := e.net.ctc()
	if h == nil {
		return nil, fmt.Errorf("%s: %w", e.name, ErrNoRows)
	}
	language, err := e.language(opt.Language)
	if err != nil {
		return nil, err
	}
	windows := e.windows(pcm, speech)
	req := request{language: language, beam: beamSize(opt), fusion: newFusion(opt.Hotwords, e.vocab, e.lm), spotter: e.newSpotter(opt.Hotwords), keep: true}
	hyps, err := e.decode(ctx, pcm, windows, req, opt, nil)
	if err != nil {
		return nil, err
	}
	list := make([]align.Recognition, len(windows))
	for i, hyp := range hyps {
		list[i] = align.Recognition{Pieces: windows[i].Pieces, Rows: hyp.rows, Spotted: hyp.spotted}
		var tokens []decode.Token
		for _, m := range e.vocab.write(hyp.emissions) {
			tokens = append(tokens, decode.Token{Text: m.text, LogProb: m.logProb, Time: m.start})
		}
		for _, w := range decode.Words(tokens) {
			list[i].Words = append(list[i].Words, align.RecognizedWord{Text: w.Text, Row: int(math.Round(w.Start / h.shift))})
		}
	}
	return list, nil
}
