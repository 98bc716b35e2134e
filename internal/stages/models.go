package stages

import (
	"errors"
	"slices"

	"github.com/otograph/otograph/internal/found"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// Missing returns an error that names the roles that the run needs and the set has no
// model for, nil if there is none. Which recognizer is needed shows only with the
// language; here it is enough that there is one.
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

// NeedsStandard reports whether a run's transcription takes the standard tier's model:
// for the text or some of it, or to tell the language.
func (s *Stages) NeedsStandard(said *found.Transcription) bool {
	return said != nil && (said.Tier == spec.TierStandard || said.Cascade.Doubtful+said.Cascade.Hearings > 0 || s.Options.ASRLanguage == nil && s.Engines.Available.Standard)
}

// Preload opens a run's models while the recording is still being decoded and searched
// for speech, two at a time. The models that the text needs come first: the voice activity
// detector and, beside it, the language detector and, where it is known which, the
// recognizer. The run does not wait for it, and trouble is left to the stage that needs
// the model. enter counts each goroutine in and returns the function that counts it out;
// with an error nothing is opened.
func (s *Stages) Preload(enter func() (done func(), err error)) {
	e := s.Engines
	var lanes [2][]func()
	if *s.Options.EnableASR {
		lanes[0] = append(lanes[0], func() { _, _ = e.VAD() })
		lanes[1] = append(lanes[1], s.preloadRecognizer)
		if *s.Options.EnableDiarize {
			lanes[0] = append(lanes[0], func() { _, _ = e.Embedder() }, func() { _, _ = e.Segmenter() })
		}
	}
	if *s.Options.EnableAudioEvents {
		lanes[1] = append(lanes[1], func() { _, _ = e.Tagger() })
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

// preloadRecognizer opens the language detector and, where it is known which, the
// recognizer.
func (s *Stages) preloadRecognizer() {
	e := s.Engines
	if s.Options.ASRLanguage != nil {
		code, _ := spec.NormalizeLanguage(*s.Options.ASRLanguage)
		_, _ = e.Recognizer(s.Tier(found.Language{Code: code}), code)
		return
	}
	if e.Available.Standard {
		_, _ = e.Standard()
	}
	only := e.Set.All(models.RoleOptimized)
	if len(only) == 1 && (s.Options.Optimize == nil || *s.Options.Optimize) && slices.ContainsFunc(only[0].Languages, func(l string) bool { return slices.Contains(e.Available.Optimized, l) }) {
		_, _ = e.Optimized("")
	}
}
