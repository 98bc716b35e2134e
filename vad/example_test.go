package vad_test

import (
	"fmt"

	"github.com/otograph/otograph/vad"
)

// Probabilities come from a model, one per 32 ms. Segments turns them into
// stretches of speech. Here, ten windows of speech follow five of silence.
func ExampleSegments() {
	probs := []float32{
		0.02, 0.01, 0.03, 0.02, 0.1,
		0.7, 0.9, 0.95, 0.98, 0.9, 0.4, 0.8, 0.99, 0.9, 0.6,
		0.1, 0.05, 0.02, 0.01, 0.01, 0.02, 0.01,
	}
	opt := vad.DefaultOptions()
	opt.MinSilence = 0.1
	for _, s := range vad.Segments(probs, len(probs)*vad.Window, opt) {
		start, end := s.Seconds()
		fmt.Printf("%.2f s to %.2f s\n", start, end)
	}
	// Output: 0.13 s to 0.51 s
}
