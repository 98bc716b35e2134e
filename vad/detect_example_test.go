package vad_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/vad"
)

// loud is a custom detector: every window above -40 dB is speech.
type loud struct{}

func (loud) Close() error { return nil }

func (loud) Probabilities(ctx context.Context, pcm *audio.PCM) ([]float32, error) {
	probabilities := make([]float32, vad.Windows(pcm.Len()))
	for i := range probabilities {
		var power float64
		samples := pcm.Samples(i*vad.Window, (i+1)*vad.Window)
		for _, s := range samples {
			power += float64(s) * float64(s)
		}
		if math.Sqrt(power/float64(len(samples))) > 0.01 {
			probabilities[i] = 1
		}
	}
	return probabilities, ctx.Err()
}

// A custom detector needs two methods.
func ExampleDetect() {
	samples := make([]float32, 3*audio.SampleRate)
	for i := audio.SampleRate; i < 2*audio.SampleRate; i++ {
		samples[i] = float32(0.3 * math.Sin(float64(i)/20))
	}
	speech, err := vad.Detect(context.Background(), loud{}, audio.FromSamples(samples), vad.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range speech {
		start, end := s.Seconds()
		fmt.Printf("%.1f s to %.1f s\n", start, end)
	}
	// Output: 1.0 s to 2.0 s
}
