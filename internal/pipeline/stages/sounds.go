package stages

import (
	"context"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
)

// DetectSounds detects the sound events.
func (s *Stages) DetectSounds(ctx context.Context, pcm *audio.PCM) (*Sounds, error) {
	opt := events.DefaultOptions()
	opt.Threshold, opt.Classes = *s.Options.AudioEventsThreshold, s.Options.AudioEventsClasses
	return compute(ctx, s.Gate, s.Engines.Tagger, func(t events.Tagger) (*Sounds, error) {
		var sounds Sounds
		var err error
		sounds.Events, err = events.Detect(ctx, countedTagger{t, s.working, &sounds.Frames}, pcm, opt)
		return &sounds, err
	})
}

// countedTagger counts the frames that a tagger yields, and reports its work.
type countedTagger struct {
	events.Tagger
	working func()
	frames  *int
}

// Scores implements events.Tagger.
func (t countedTagger) Scores(ctx context.Context, pcm *audio.PCM, yield func(frame int, scores []float32) error) error {
	return t.Tagger.Scores(ctx, pcm, func(frame int, scores []float32) error {
		*t.frames++
		t.working()
		return yield(frame, scores)
	})
}
