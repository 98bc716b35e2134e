package stages

import (
	"context"
	"errors"
	"slices"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// Missing returns an error that names the roles that the run needs and for
// which the set has no model, nil if there is none. The language decides which
// recognizer is needed; here it is enough that there is one.
func (s *Stages) Missing() error {
	set := s.Engines.Set
	var errs []error
	need := func(role models.Role) {
		_, err := set.Need(role)
		errs = append(errs, err)
	}
	if *s.Options.EnableASR {
		need(models.RoleVAD)
		if s.Translate || len(set.All(models.RoleOptimized)) == 0 {
			need(models.RoleStandard)
		}
	}
	if *s.Options.EnableDiarize {
		need(models.RoleEmbedder)
	}
	if *s.Options.EnableAudioEvents {
		need(models.RoleTagger)
	}
	return errors.Join(errs...)
}

// NeedsStandard reports whether a run's transcription needs the standard tier's
// model: for all or some of the text, or to detect the language.
func (s *Stages) NeedsStandard(t *Transcription) bool {
	return t != nil && (t.Tier == spec.TierStandard || t.Cascade.Doubtful+t.Cascade.Hearings > 0 || s.Options.ASRLanguage == nil && s.Engines.Available.Standard)
}

// Preload opens a run's models while the recording is still being decoded and
// searched for speech, two at a time. The models that the text needs come
// first: the voice activity detector and, concurrently, the language detector
// and the recognizer if it is known. The recognizer and the embedder, whose
// opening needs most memory, are opened one after the other. The run does not
// wait for Preload, and the stage that needs a model reports its error. Each
// goroutine calls enter at its start and done at its end; if enter fails,
// nothing is opened.
func (s *Stages) Preload(ctx context.Context, enter func() (done func(), err error)) {
	e := s.Engines
	var lanes [2][]func()
	if *s.Options.EnableASR {
		lanes[0] = append(lanes[0], func() { _, _ = e.VAD() })
		lanes[1] = append(lanes[1], func() { s.preloadRecognizer(ctx) })
		if *s.Options.EnableDiarize {
			lanes[0] = append(lanes[0], func() { _, _ = e.Segmenter() })
			lanes[1] = append(lanes[1], func() { _, _ = e.Embedder() })
		}
	}
	if *s.Options.EnableAudioEvents {
		lanes[0] = append(lanes[0], func() { _, _ = e.Tagger() })
	}
	for _, lane := range lanes {
		done, err := enter()
		if err != nil {
			return
		}
		go func() {
			defer done()
			for _, load := range lane {
				load()
			}
		}()
	}
}

// preloadRecognizer opens the language detector, and the recognizer if known.
func (s *Stages) preloadRecognizer(ctx context.Context) {
	e := s.Engines
	if s.Options.ASRLanguage != nil {
		code, _ := spec.NormalizeLanguage(*s.Options.ASRLanguage)
		_, _ = e.Recognizer(ctx, s.Tier(Language{Code: code}), code)
		return
	}
	if e.Available.Standard {
		_, _ = e.Recognizer(ctx, spec.TierStandard, "")
	}
	only := e.Set.All(models.RoleOptimized)
	if len(only) == 1 && (s.Options.Optimize == nil || *s.Options.Optimize) && slices.ContainsFunc(only[0].Languages, func(l string) bool { return slices.Contains(e.Available.Optimized, l) }) {
		_, _ = e.Recognizer(ctx, spec.TierOptimized, "")
	}
}
