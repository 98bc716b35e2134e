package stages

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// Reports holds callbacks of a transcription; either may be nil.
type Reports struct {
	// Progress receives the seconds of speech decoded so far and in all.
	Progress func(done, total float64)
	// Settled receives sentences once they are final, in order and each once.
	Settled func([]asr.Segment)
}

// Transcribe returns the text of the speech in a recording. The recognizer
// itself waits for cores.
func (s *Stages) Transcribe(ctx context.Context, pcm *audio.PCM, speech *Speech, l Language, report Reports) (*Transcription, error) {
	text := &Transcription{Language: l, Tier: s.Tier(l), Transcript: &asr.Transcript{Language: l.Code}}
	if len(speech.Spans) == 0 {
		return text, nil
	}
	t, err := s.Engines.Recognizer(ctx, text.Tier, l.Code)
	if err != nil {
		return nil, err
	}
	abilities := t.Abilities()
	text.Abilities = &abilities
	threshold := *s.Options.NoSpeechThreshold
	opt := s.recognition(t, text.Tier, l)
	opt.Settled, opt.Progress = speech.holdBack(report.Settled), report.Progress
	if text.Tier == spec.TierOptimized {
		opt.Settled = s.settled(speech, l.Code, abilities, threshold, opt.Settled)
	}
	if text.Transcript, err = s.text(ctx, text.Tier, t, pcm, speech, opt); err != nil {
		return nil, err
	}
	if !s.Translate {
		calibrate(text.Transcript, s.Engines.Model(text.Tier, l.Code))
	}
	if text.Tier == spec.TierOptimized {
		discard(speech, text.Transcript, abilities, threshold)
		text.Cascade, text.Again, err = s.again(ctx, pcm, speech, text.Transcript, opt)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			s.Log.WarnContext(ctx, "the optimized tier's text is kept", "error", err)
			text.Uncorrected = err.Error()
		}
	}
	if threshold < 1 && !s.Spoken { // 1 keeps all text
		text.Transcript.Segments = speech.joinSpots(text.Transcript.Segments)
		reject(speech, text.Transcript)
	}
	return text, nil
}

func (s *Stages) recognition(t asr.Transcriber, tier spec.Tier, l Language) asr.Options {
	opt := asr.DefaultOptions()
	opt.Language = l.Code
	if s.Options.ASRLanguage == nil {
		opt.Languages = asr.Among(t.Languages(), s.Among)
	}
	opt.BeamSize = *s.Options.ASRBeamSize
	opt.Temperature = *s.Options.ASRTemperature
	opt.BestOf = *cmp.Or(s.Options.ASRBestOf, new(0))
	opt.Hotwords = s.Options.Hotwords
	opt.InitialPrompt = *cmp.Or(s.Options.InitialPrompt, new(""))
	opt.NoSpeechThreshold = max(*s.Options.NoSpeechThreshold, math.SmallestNonzeroFloat64) // recognizers take 0 for the default
	opt.WordTimestamps = *s.Options.TimestampLevel == spec.TimestampWord && (tier == spec.TierStandard || s.OptimizedWords)
	opt.Translate = s.Translate
	opt.Parallel = s.Cores
	opt.Gate = s.Gate
	opt.Working = s.Working
	return opt
}

// Sketch returns the text so far of speech that continues.
func (s *Stages) Sketch(ctx context.Context, pcm *audio.PCM, speech []audio.Span, draft asr.Draft, l Language) (*asr.Transcript, error) {
	tier := s.Tier(l)
	t, err := s.Engines.Recognizer(ctx, tier, l.Code)
	if err != nil {
		return nil, err
	}
	opt := s.recognition(t, tier, l)
	opt.WordTimestamps, opt.Draft = false, draft
	if sketcher, ok := t.(asr.Sketcher); ok {
		return sketcher.Sketch(ctx, pcm, speech, opt)
	}
	return t.Transcribe(ctx, pcm, speech, opt)
}

// settled returns the callback for sentences of the optimized tier, without
// those that discard removes; nil if the cascade may change them.
func (s *Stages) settled(speech *Speech, language string, abilities asr.Abilities, threshold float64, give func([]asr.Segment)) func([]asr.Segment) {
	if give == nil || s.Cascade > 0 && s.Engines.Model(spec.TierStandard, language) != nil {
		return nil
	}
	return func(sentences []asr.Segment) {
		t := &asr.Transcript{Segments: slices.Clone(sentences)}
		discard(speech, t, abilities, threshold)
		give(t.Segments)
	}
}

// text transcribes with a tier's recognizer. If the recognizer is not a CTC
// model, a CTC model of the language looks for hotwords in its text, and times
// the standard tier's words if they are requested.
func (s *Stages) text(ctx context.Context, tier spec.Tier, t asr.Transcriber, pcm *audio.PCM, speech *Speech, opt asr.Options) (*asr.Transcript, error) {
	timed := opt.WordTimestamps
	aligner := s.companion(ctx, tier, opt)
	if aligner != nil && len(opt.Hotwords) > 0 {
		opt.WordTimestamps, opt.Settled = true, nil // the text is final after the alignment
	}
	text, err := t.Transcribe(ctx, pcm, speech.Spans, opt)
	if err != nil || aligner == nil || !opt.WordTimestamps {
		return text, err
	}
	o := align.Options{Hotwords: opt.Hotwords, Parallel: s.Cores, Gate: s.Gate}
	if err := align.Transcript(ctx, aligner, pcm, speech.Spans, text, o); err != nil {
		return nil, err
	}
	markDoubtful(speech, text)
	for i := range text.Segments {
		if !timed {
			text.Segments[i].Words = nil
		}
	}
	return text, nil
}

// again decodes doubtful segments of the optimized tier with the standard tier,
// if the set has a standard model that supports the language, and puts the
// better text into t. with lists the options that the standard tier honored;
// nil if it decoded nothing. After an error t is unchanged.
func (s *Stages) again(ctx context.Context, pcm *audio.PCM, speech *Speech, t *asr.Transcript, opt asr.Options) (done spec.CascadeStats, with *Honored, err error) {
	optimized, standard := s.Engines.Model(spec.TierOptimized, t.Language), s.Engines.Model(spec.TierStandard, t.Language)
	if s.Cascade <= 0 || standard == nil || optimized == nil {
		return done, nil, nil
	}
	done.Segments, done.Seconds = len(t.Segments), Seconds(speech.Spans)
	list := doubts(t.Segments, speech.Spans, t.Language, optimized.Languages, s.Cascade)
	if len(list) == 0 {
		return done, nil, nil
	}
	start := time.Now()
	defer func() { done.Took = time.Since(start).Seconds() }()
	recognizer, err := s.Engines.Recognizer(ctx, spec.TierStandard, t.Language)
	if err != nil {
		return done, nil, err
	}
	list, err = compute(ctx, s.Gate, func() (asr.Transcriber, error) { return recognizer, nil }, func(t asr.Transcriber) (kept []doubt, err error) {
		detector, _ := t.(asr.LanguageDetector)
		kept, done.Hearings, err = spokenOtherwise(ctx, detector, pcm, list, languageChecks(speech.Spans))
		return kept, err
	})
	if err != nil || len(list) == 0 {
		return done, nil, err
	}
	var unsure []audio.Span
	for _, d := range list {
		done.Doubtful += d.End - d.First
		unsure = append(unsure, d.Speech...)
	}
	done.DoubtfulSeconds = Seconds(unsure)
	opt.Language, opt.Progress, opt.Settled = t.Language, nil, nil
	if opt.Languages != nil {
		opt.Languages = asr.Among(recognizer.Languages(), s.Among)
	}
	fresh, err := s.text(ctx, spec.TierStandard, recognizer, pcm, &Speech{Spans: unsure, Probabilities: speech.Probabilities}, opt)
	if err != nil {
		return done, nil, err
	}
	done.ASR = fresh.Stats
	calibrate(fresh, standard)
	t.Segments, done.Replaced = replace(t.Segments, list, fresh.Segments, t.Language, optimized.Languages)
	return done, &Honored{Abilities: recognizer.Abilities(), Ineffective: fresh.Ineffective, Unspelled: fresh.Unspelled}, nil
}

// Tier returns the tier for a recording in the given language.
func (s *Stages) Tier(l Language) spec.Tier {
	if s.Translate {
		return spec.TierStandard // the only tier with a model
	}
	return spec.Route(l.Code, spec.Options(s.Options), s.Engines.Available)
}

// companion returns the CTC model that checks the words of another model of a
// tier, or nil if no model supports their language or there is nothing to do.
// Words of the optimized tier keep their own times unless there are hotwords.
func (s *Stages) companion(ctx context.Context, tier spec.Tier, opt asr.Options) align.Model {
	m, ok := s.Engines.Set.AlignerFor(opt.Language)
	writer := s.Engines.Model(tier, opt.Language)
	switch {
	case !ok || s.Translate || len(opt.Hotwords) == 0 && (tier == spec.TierOptimized || !opt.WordTimestamps):
		return nil
	case m == writer: // the model that wrote the words needs no check
		return nil
	}
	model, err := s.openAligner(ctx, m)
	if err != nil {
		s.Log.WarnContext(ctx, "words stay as they were recognized", "error", err)
		return nil
	}
	return model
}
