package events_test

import (
	"context"
	"fmt"
	"log"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/spec"
)

// silent is a custom tagger: every second of silence is "Silence".
type silent struct{ class spec.EventClass }

func (silent) Grid() events.Grid { return events.Grid{Window: 1, Hop: 1} }
func (silent) Close() error      { return nil }

func (s silent) Scores(ctx context.Context, pcm *audio.PCM, yield func(int, []float32) error) error {
	for frame := 0; frame*audio.SampleRate < pcm.Len(); frame++ {
		scores := make([]float32, spec.NumEventClasses)
		scores[s.class.Index] = 1
		for _, x := range pcm.Samples(frame*audio.SampleRate, (frame+1)*audio.SampleRate) {
			if x != 0 {
				scores[s.class.Index] = 0
			}
		}
		if err := yield(frame, scores); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// A custom tagger needs three methods.
func ExampleDetect() {
	class, _ := spec.LookupEventClass("Silence")
	samples := make([]float32, 10*audio.SampleRate)
	for i := range 4 * audio.SampleRate {
		samples[i] = 0.1
	}
	found, err := events.Detect(context.Background(), silent{class}, audio.FromSamples(samples), events.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range found {
		fmt.Printf("%.0f s to %.0f s: %s\n", e.Start, e.End, e.Class.DisplayName)
	}
	// Output: 4 s to 10 s: Silence
}
