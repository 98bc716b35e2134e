package stages

import (
	"context"
	"math"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
)

func (s *Stages) soundOptions() events.Options {
	opt := events.DefaultOptions()
	opt.Threshold, opt.Classes = *s.Options.AudioEventsThreshold, s.Options.AudioEventsClasses
	return opt
}

// DetectSounds detects the sound events.
func (s *Stages) DetectSounds(ctx context.Context, pcm *audio.PCM) (*Sounds, error) {
	opt := s.soundOptions()
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

// framesAtOnce is the number of frames that a SoundStream scores in a call.
const framesAtOnce = 8

// SoundStream detects the sound events of a live session.
type SoundStream struct {
	stages *Stages
	tagger events.Tagger
	stream *events.Stream
	hop    int // samples between frames
	window int // samples of a frame
	next   int // the first frame that Next has not returned
	// Sounds are the events so far.
	Sounds
}

// SoundStream returns a stream from the beginning of a session.
func (s *Stages) SoundStream() (*SoundStream, error) {
	t, err := s.Engines.Tagger()
	if err != nil {
		return nil, err
	}
	grid := t.Grid()
	stream, err := events.NewStream(grid, s.soundOptions())
	samples := func(seconds float64) int { return int(math.Round(seconds * audio.SampleRate)) }
	return &SoundStream{stages: s, tagger: t, stream: stream, hop: samples(grid.Hop), window: samples(grid.Window)}, err
}

// First returns the sample from which on Next will give sound.
func (s *SoundStream) First() int { return s.next * s.hop }

// Next returns the next range of samples to score, once the session has the
// samples, and moves past it. The last range may be shorter than a frame.
func (s *SoundStream) Next(length int, rest bool) (from, to int, ok bool) {
	from = s.First()
	to = from + (framesAtOnce-1)*s.hop + s.window
	switch {
	case to <= length:
		s.next += framesAtOnce
		return from, to, true
	case !rest || length == 0 || s.next > 0 && length <= from-s.hop+s.window:
		return 0, 0, false
	}
	return from, length, true
}

// Push scores a range that Next returned and returns events that are now final.
func (s *SoundStream) Push(ctx context.Context, pcm *audio.PCM) (out []events.Event, err error) {
	_, err = compute(ctx, s.stages.Gate, func() (events.Tagger, error) { return s.tagger, nil }, func(t events.Tagger) (none struct{}, err error) {
		return none, t.Scores(ctx, pcm, func(_ int, scores []float32) error {
			s.Frames++
			list, err := s.stream.Push(scores)
			out = append(out, list...)
			return err
		})
	})
	s.Events = append(s.Events, out...)
	return out, err
}

// Flush ends the session, whose length is in seconds, and returns the remaining
// events. The field Events then has all, in the order of Detect.
func (s *SoundStream) Flush(length float64) []events.Event {
	out := s.stream.Flush(length)
	s.Events = append(s.Events, out...)
	events.Sort(s.Events)
	return out
}
