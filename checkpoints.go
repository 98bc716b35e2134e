package otograph

import (
	"context"
	"encoding/json"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
)

// Checkpoints keep finished stages of a run, so that a run that was cut off goes
// on where it was. They must belong to one recording, one set of options and one
// set of models.
type Checkpoints interface {
	// Load returns what was saved for a stage, nil when there is nothing.
	Load(ctx context.Context, stage string) ([]byte, error)
	// Save keeps data for a stage in place of what was there.
	Save(ctx context.Context, stage string, data []byte) error
}

// WithCheckpoints takes finished stages from c and saves them there. Trouble
// with the checkpoints does not fail the run; it is logged.
func WithCheckpoints(c Checkpoints) RunOption {
	return func(r *run) { r.checkpoints = c }
}

// The forms in which stages are kept.
type (
	savedSpeech   struct{ Speech []audio.Span }
	savedLanguage struct {
		Language    string
		Probability float64
	}
	savedTranscript struct {
		Tier       Tier
		Transcript *asr.Transcript
	}
	savedEvents struct{ Events []events.Event }
)

// resumed runs a stage's work unless its outcome is kept. get and put turn the
// outcome into its kept form and back.
func resumed[T any](ctx context.Context, r *run, s Stage, get func() T, put func(T), work func(context.Context) error) error {
	if r.checkpoints == nil {
		return work(ctx)
	}
	data, err := r.checkpoints.Load(ctx, string(s))
	var kept T
	switch {
	case err != nil:
		r.p.log.WarnContext(ctx, "checkpoint not read", "stage", s, "error", err)
	case data == nil:
	case json.Unmarshal(data, &kept) != nil:
		r.p.log.WarnContext(ctx, "checkpoint not understood", "stage", s)
	default:
		put(kept)
		return nil
	}
	if err := work(ctx); err != nil {
		return err
	}
	data, err = json.Marshal(get())
	if err == nil {
		err = r.checkpoints.Save(ctx, string(s), data)
	}
	if err != nil {
		r.p.log.WarnContext(ctx, "checkpoint not saved", "stage", s, "error", err)
	}
	return nil
}

func (r *run) speechStage(ctx context.Context) error {
	return resumed(ctx, r, StageVAD,
		func() savedSpeech { return savedSpeech{r.speech} },
		func(s savedSpeech) { r.speech = s.Speech }, r.detectSpeech)
}

func (r *run) languageStage(ctx context.Context) error {
	return resumed(ctx, r, StageLanguage,
		func() savedLanguage { return savedLanguage{r.language, r.probability} },
		func(s savedLanguage) { r.language, r.probability = s.Language, s.Probability }, r.findLanguage)
}

func (r *run) transcribeStage(ctx context.Context) error {
	return resumed(ctx, r, StageTranscribe,
		func() savedTranscript { return savedTranscript{r.tier, r.transcript} },
		func(s savedTranscript) {
			r.tier, r.transcript = s.Tier, s.Transcript
			if r.transcript == nil {
				r.transcript = &asr.Transcript{Language: r.language}
			}
		}, r.transcribe)
}

func (r *run) eventsStage(ctx context.Context) error {
	return resumed(ctx, r, StageEvents,
		func() savedEvents { return savedEvents{r.heard} },
		func(s savedEvents) {
			if r.heard = s.Events; r.heard == nil {
				r.heard = []events.Event{}
			}
		}, r.listen)
}
