package whisper

import (
	"context"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/spec"
)

// Sketch implements asr.Sketcher. It encodes the speech with little silence
// after it, and takes the best token at each step: for a few seconds of speech
// this costs a small part of Transcribe, and nothing is repaired. One pass of
// the decoder checks all tokens of the draft.
func (e *Engine) Sketch(ctx context.Context, pcm *audio.PCM, speech []audio.Span, draft string, opt asr.Options) (*asr.Transcript, error) {
	language, err := e.language(opt.Language)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	opt.BeamSize, opt.Temperature, opt.NoSpeechThreshold = 1, 0, opt.DiscardAbove()
	t := &task{opt: opt, language: language, speech: speech}
	var jobs []*job
	for _, w := range decode.Pack(speech, pcm, e.packing) {
		j := e.textJob(pcm, w, textPlan{t: t, language: language})
		j.brief = true
		jobs = append(jobs, j)
	}
	if len(jobs) == 1 && draft != "" && e.cpu.rules.unmarked {
		if spec.Spaced(language) {
			draft = " " + draft
		}
		jobs[0].draft = e.cpu.Tokenize(draft)
	}
	var words []decode.Word
	if err := e.decode(ctx, jobs, opt, func(int) {}); err != nil {
		return nil, err
	}
	transcript := &asr.Transcript{Language: language}
	for _, j := range jobs {
		r := e.conclude(j, t)
		transcript.Stats.Add(r.stats)
		if !r.attempt.degenerate() {
			words = append(words, r.words...)
		}
	}
	decode.Settle(words, speech)
	transcript.Segments = decode.Sentences(words, opt.WordTimestamps)
	return transcript, nil
}
