package otograph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
)

// stages do the work of a run. Each is a function of what it needs and returns
// what it found; none keeps anything.
type stages struct {
	engines *engines
	opt     EffectiveOptions
	cores   int
	gate    *semaphore.Weighted // one unit for each core, held while a core computes
	log     *slog.Logger

	optimizedWords bool    // in the segments of the optimized tier
	translate      bool    // into English
	cascade        float64 // the confidence below which the standard tier decodes again
	settled        func([]asr.Segment)
}

// compute loads a model, waits for a core and works with the model on it.
func compute[E, T any](ctx context.Context, gate *semaphore.Weighted, load func() (E, error), work func(E) (T, error)) (T, error) {
	var none T
	engine, err := load()
	if err != nil {
		return none, err
	}
	if err := gate.Acquire(ctx, 1); err != nil {
		return none, err
	}
	defer gate.Release(1)
	return work(engine)
}

// detectSpeech finds the stretches of speech.
func (s *stages) detectSpeech(ctx context.Context, pcm *audio.PCM) (*speech, error) {
	opt := vad.DefaultOptions()
	opt.Threshold = *s.opt.VADThreshold
	opt.MinSpeech = time.Duration(*s.opt.VADMinSpeechMS) * time.Millisecond
	opt.MinSilence = time.Duration(*s.opt.VADMinSilenceMS) * time.Millisecond
	opt.SpeechPad = time.Duration(*s.opt.VADSpeechPadMS) * time.Millisecond
	return compute(ctx, s.gate, s.engines.loadVAD, func(m vad.Model) (*speech, error) {
		probs, err := m.Probabilities(ctx, pcm)
		if err != nil {
			return nil, fmt.Errorf("voice activity: %w", err)
		}
		spans, err := vad.Refined(probs, pcm, opt)
		return &speech{Spans: spans, Probabilities: coarse(probs), Windows: len(probs)}, err
	})
}

// findLanguage returns the caller's language, or asks the standard model, or, if
// there is none, the optimized model.
func (s *stages) findLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span) (language, error) {
	if s.opt.ASRLanguage != nil {
		code, _ := spec.NormalizeLanguage(*s.opt.ASRLanguage) // validated before
		return language{code, 1}, nil
	}
	load := func() (asr.LanguageDetector, error) {
		if s.engines.available.Standard {
			return s.engines.loadStandard()
		}
		return s.engines.loadOptimized("")
	}
	return compute(ctx, s.gate, load, func(d asr.LanguageDetector) (language, error) {
		code, probability, err := d.DetectLanguage(ctx, pcm, speech)
		if errors.Is(err, onnx.ErrNoLanguage) {
			err = &OptionError{Field: "asr_language", Reason: "is required: none of the loaded models can detect the language"}
		}
		return language{code, probability}, err
	})
}

// transcribe finds what was said. The recognizer itself waits for cores.
func (s *stages) transcribe(ctx context.Context, pcm *audio.PCM, heard *speech, l language, report func(done, total float64)) (*transcription, error) {
	speech := heard.Spans
	found := &transcription{Language: l, Tier: s.tier(l), Transcript: &asr.Transcript{Language: l.Code}}
	if len(speech) == 0 {
		return found, nil
	}
	t, err := s.engines.recognizer(found.Tier, l.Code)
	if err != nil {
		return nil, err
	}
	abilities := t.Abilities()
	found.Abilities = &abilities
	opt := asr.DefaultOptions()
	opt.Language = l.Code
	opt.BeamSize = *s.opt.ASRBeamSize
	opt.Temperature = *s.opt.ASRTemperature
	opt.BestOf = or(s.opt.ASRBestOf, 0)
	opt.Hotwords = s.opt.Hotwords
	opt.InitialPrompt = or(s.opt.InitialPrompt, "")
	opt.NoSpeechThreshold = *s.opt.NoSpeechThreshold
	opt.WordTimestamps = *s.opt.TimestampLevel == TimestampWord && (found.Tier == TierStandard || s.optimizedWords)
	opt.Translate, opt.Settled = s.translate, surely(s.settled)
	opt.Parallel = s.cores
	opt.Gate = s.gate
	opt.Progress = report
	if found.Transcript, err = s.text(ctx, found.Tier, t, pcm, heard, opt); err != nil {
		return nil, err
	}
	if !s.translate {
		calibrate(found.Transcript, s.engines.model(found.Tier, l.Code))
	}
	if found.Tier == TierOptimized {
		heard.discard(found.Transcript, abilities, opt.NoSpeechThreshold)
		found.Cascade, found.Again, err = s.again(ctx, pcm, heard, found.Transcript, opt)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			s.log.WarnContext(ctx, "the optimized tier's text is kept", "error", err)
			found.Uncorrected = err.Error()
		}
	}
	if opt.NoSpeechThreshold < 1 { // 1 keeps all text
		heard.reject(found.Transcript)
	}
	return found, nil
}

// text transcribes with a tier's recognizer. A CTC model of the language looks for
// hotwords in what another kind of model writes, and times the standard tier's words
// where they are asked for.
func (s *stages) text(ctx context.Context, tier Tier, t asr.Transcriber, pcm *audio.PCM, heard *speech, opt asr.Options) (*asr.Transcript, error) {
	timed := opt.WordTimestamps
	aligner := s.companion(ctx, tier, opt)
	if aligner != nil && len(opt.Hotwords) > 0 {
		opt.WordTimestamps, opt.Settled = true, nil // the text is not settled before
	}
	text, err := t.Transcribe(ctx, pcm, heard.Spans, opt)
	if err != nil || aligner == nil || !opt.WordTimestamps {
		return text, err
	}
	o := align.Options{Hotwords: opt.Hotwords, Parallel: s.cores, Gate: s.gate}
	if err := align.Transcript(ctx, aligner, pcm, heard.Spans, text, o); err != nil {
		return nil, err
	}
	heard.doubt(text)
	for i := range text.Segments {
		if !timed {
			text.Segments[i].Words = nil
		}
	}
	return text, nil
}

// again decodes what the optimized tier is unsure of with the standard tier, where
// there is a model of it that knows the language, and puts the better text into t.
// with is what the standard tier honored of the options; nil if it decoded nothing.
// With an error t is as it was. A demonstration does not judge a real model.
func (s *stages) again(ctx context.Context, pcm *audio.PCM, heard *speech, t *asr.Transcript, opt asr.Options) (done spec.CascadeStats, with *honored, err error) {
	optimized, standard := s.engines.model(TierOptimized, t.Language), s.engines.model(TierStandard, t.Language)
	if s.cascade <= 0 || standard == nil || optimized == nil || standard.Demo && !optimized.Demo {
		return done, nil, nil
	}
	done.Segments, done.Seconds = len(t.Segments), spoken(heard.Spans)
	list := doubts(t.Segments, heard.Spans, t.Language, optimized.Languages, s.cascade)
	if len(list) == 0 {
		return done, nil, nil
	}
	start := time.Now()
	defer func() { done.Took = time.Since(start).Seconds() }()
	recognizer, err := s.engines.loadStandard()
	if err != nil {
		return done, nil, err
	}
	list, err = compute(ctx, s.gate, s.engines.loadStandard, func(d *whisper.Engine) (kept []doubt, err error) {
		kept, done.Hearings, err = heardOtherwise(ctx, d, pcm, list, hearings(heard.Spans))
		return kept, err
	})
	if err != nil || len(list) == 0 {
		return done, nil, err
	}
	var unsure []audio.Span
	for _, d := range list {
		done.Doubtful += d.end - d.first
		unsure = append(unsure, d.speech...)
	}
	done.DoubtfulSeconds = spoken(unsure)
	opt.Language, opt.Progress, opt.Settled = t.Language, nil, nil
	fresh, err := s.text(ctx, TierStandard, recognizer, pcm, &speech{Spans: unsure, Probabilities: heard.Probabilities}, opt)
	if err != nil {
		return done, nil, err
	}
	done.ASR = fresh.Stats
	calibrate(fresh, standard)
	t.Segments, done.Replaced = replaced(t.Segments, list, fresh.Segments, t.Language, optimized.Languages)
	return done, &honored{recognizer.Abilities(), fresh.Powerless, fresh.Unspelled}, nil
}

// tier returns the tier that a recording in the language gets.
func (s *stages) tier(l language) Tier {
	if s.translate {
		return TierStandard // the only one that can
	}
	return spec.Route(l.Code, Options(s.opt), s.engines.available)
}

// exactWindows is the number of voice windows up to which all are clustered:
// 38 minutes of speech in 18 MB. Longer recordings are clustered on a sample of
// this size.
const exactWindows = 3000

func (s *stages) diarizeOptions(e diarize.Embedder) diarize.Options {
	opt := diarize.DefaultOptions()
	opt.NumSpeakers = or(s.opt.NumSpeakers, 0)
	opt.MinSpeakers, opt.MaxSpeakers = *s.opt.MinSpeakers, *s.opt.MaxSpeakers
	opt.MinSegment = *s.opt.DiarizeMinSegmentSec
	opt.SingleSpeakerThreshold = *s.opt.DiarizeSingleSpeakerThreshold
	opt.SameSpeakerCosine = e.SameSpeaker()
	opt.ExactWindows = exactWindows
	return opt
}

// embed computes the voices of the speech.
func (s *stages) embed(ctx context.Context, pcm *audio.PCM, speech []audio.Span) (*diarize.Embeddings, error) {
	return compute(ctx, s.gate, s.engines.loadEmbedder, func(e diarize.Embedder) (*diarize.Embeddings, error) {
		opt := s.diarizeOptions(e)
		segmenter, err := s.engines.loadSegmenter()
		if err != nil {
			return nil, err
		}
		opt.Segmenter = segmenter
		return diarize.Embed(ctx, e, pcm, speech, opt)
	})
}

// cluster groups the voices by speaker. If a transcription is known, only
// stretches with text count.
func (s *stages) cluster(ctx context.Context, voices *diarize.Embeddings, said *transcription) (*diarize.Result, error) {
	return compute(ctx, s.gate, s.engines.loadEmbedder, func(e diarize.Embedder) (*diarize.Result, error) {
		if said != nil {
			voices = voices.Only(func(speech audio.Span) bool { return understood(said.Transcript.Segments, speech) })
		}
		return diarize.Cluster(ctx, voices, s.diarizeOptions(e))
	})
}

// understood reports whether anything was transcribed in a stretch of speech.
// Where nothing was, a detector took music or noise for speech: it must not
// become a speaker.
func understood(segments []asr.Segment, speech audio.Span) bool {
	const least = 0.05 // seconds in common
	start, end := speech.Seconds()
	i := sort.Search(len(segments), func(i int) bool { return segments[i].End > start })
	for ; i < len(segments) && segments[i].Start < end; i++ {
		if min(end, segments[i].End)-max(start, segments[i].Start) >= min(least, end-start) {
			return true
		}
	}
	return false
}

// detectSounds finds the sound events.
func (s *stages) detectSounds(ctx context.Context, pcm *audio.PCM) (*sounds, error) {
	opt := events.DefaultOptions()
	opt.Threshold, opt.Classes = *s.opt.AudioEventsThreshold, s.opt.AudioEventsClasses
	return compute(ctx, s.gate, s.engines.loadTagger, func(t events.Tagger) (*sounds, error) {
		var found sounds
		var err error
		found.Events, err = events.Detect(ctx, countedTagger{t, &found.Frames}, pcm, opt)
		return &found, err
	})
}

// countedTagger counts the frames that a tagger yields.
type countedTagger struct {
	events.Tagger
	frames *int
}

// Scores implements events.Tagger.
func (t countedTagger) Scores(ctx context.Context, pcm *audio.PCM, yield func(frame int, scores []float32) error) error {
	return t.Tagger.Scores(ctx, pcm, func(frame int, scores []float32) error {
		*t.frames++
		return yield(frame, scores)
	})
}

// or returns what p points to, or def when it is nil.
func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

// companion returns the CTC model that hears the words which another model of a tier
// writes, or nil if no model serves their language or there is nothing to do. Words
// of the optimized tier keep their own times unless hotwords are looked for.
func (s *stages) companion(ctx context.Context, tier Tier, opt asr.Options) align.Model {
	m, ok := s.engines.set.AlignerFor(opt.Language)
	writer := s.engines.model(tier, opt.Language)
	switch {
	case !ok || s.translate || len(opt.Hotwords) == 0 && (tier == TierOptimized || !opt.WordTimestamps):
		return nil
	case m == writer: // it hears for itself
		return nil
	case m.Demo && writer != nil && !writer.Demo:
		return nil // a demonstration does not correct a real model
	}
	model, err := s.engines.openOptimized(m)
	if err != nil {
		s.log.WarnContext(ctx, "words stay as they were recognized", "error", err)
		return nil
	}
	return model
}
