package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
)

// SpeechOptions returns the run's options of voice activity detection.
func (s *Stages) SpeechOptions() vad.Options {
	opt := vad.DefaultOptions()
	opt.Threshold = *s.Options.VADThreshold
	opt.MinSpeech = float64(*s.Options.VADMinSpeechMS) / 1000
	opt.MinSilence = float64(*s.Options.VADMinSilenceMS) / 1000
	opt.SpeechPad = float64(*s.Options.VADSpeechPadMS) / 1000
	return opt
}

// DetectSpeech returns the stretches of speech in a recording.
func (s *Stages) DetectSpeech(ctx context.Context, pcm *audio.PCM) (*Speech, error) {
	opt := s.SpeechOptions()
	return compute(ctx, s.Gate, s.Engines.VAD, func(m vad.Model) (*Speech, error) {
		probs, err := m.Probabilities(ctx, pcm.Leveled())
		if err != nil {
			return nil, fmt.Errorf("voice activity: %w", err)
		}
		spans, err := vad.Refined(probs, pcm, opt)
		return &Speech{Spans: pcm.Timeline().Split(spans), Probabilities: coarse(probs), Windows: len(probs)}, err
	})
}

// Sides returns the speech of the mix or, for split channels, of each channel
// that has its own. The first side's Speech.Repeated has the stretches in which
// a channel repeats another.
func (s *Stages) Sides(ctx context.Context, r Recording) (sides []Side, err error) {
	if r.Split == nil {
		speech, err := s.DetectSpeech(ctx, r.PCM)
		return []Side{{Channel: Mix, Speech: speech}}, err
	}
	for i, c := range r.Split {
		speech, err := s.DetectSpeech(ctx, c)
		if err != nil {
			return nil, err
		}
		sides = append(sides, Side{Channel: i, Speech: speech})
	}
	repeated := echoes(ctx, r.Split, sides)
	sides = slices.DeleteFunc(sides, func(s Side) bool { return len(s.Speech.Spans) == 0 })
	// The beginnings of speech determine the order of the sides, and thus the
	// speakers' numbers.
	slices.SortStableFunc(sides, func(a, b Side) int { return cmp.Compare(a.Speech.Spans[0].Start, b.Speech.Spans[0].Start) })
	if len(sides) > 0 {
		sides[0].Speech.Repeated = repeated
	}
	return sides, ctx.Err()
}

// FindLanguage returns the caller's language, or detects it with the standard
// model or, without one, with the optimized model.
func (s *Stages) FindLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span) (Language, error) {
	if s.Options.ASRLanguage != nil {
		code, _ := spec.NormalizeLanguage(*s.Options.ASRLanguage) // validated before
		return Language{Code: code, Probability: 1}, nil
	}
	load := func() (asr.Transcriber, error) {
		tier := spec.TierOptimized
		if s.Engines.Available.Standard {
			tier = spec.TierStandard
		}
		return s.Engines.Recognizer(ctx, tier, "")
	}
	return compute(ctx, s.Gate, load, func(t asr.Transcriber) (Language, error) {
		code, probability, err := "", 0.0, asr.ErrNoLanguage
		if d, ok := t.(asr.LanguageDetector); ok {
			code, probability, err = d.DetectLanguage(ctx, pcm, speech, asr.Detection{Among: s.Among, Brief: s.mayOptimize()})
		}
		if errors.Is(err, asr.ErrNoLanguage) {
			err = &spec.OptionError{Field: "asr_language", Reason: "is required: none of the loaded models can detect the language"}
		}
		return Language{Code: code, Probability: probability}, err
	})
}

// mayOptimize reports whether the optimized tier knows a possible language.
func (s *Stages) mayOptimize() bool {
	return slices.ContainsFunc(s.Engines.Available.Optimized, func(code string) bool {
		return (len(s.Among) == 0 || slices.Contains(s.Among, code)) && s.Tier(Language{Code: code}) == spec.TierOptimized
	})
}
