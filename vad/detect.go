// Package vad finds the stretches of speech in a recording.
//
// A [Model] returns the probability of speech for every 32 ms. [Segments] turns
// probabilities into segments by the Silero project's published rules, exactly
// as its code does, and [Detect] refines their borders. The package contains no
// network; vad/silero implements one.
package vad

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/audio"
)

// Model computes speech probabilities.
type Model interface {
	// Probabilities returns a value from 0 to 1 for each window of [Window]
	// samples, also a short last one. It returns soon after ctx is done.
	Probabilities(ctx context.Context, pcm *audio.PCM) ([]float32, error)
	// Close releases the model.
	Close() error
}

// Streamer is a Model that can also follow a sound while it grows.
type Streamer interface {
	Model
	// Stream returns a model of one sound, from its beginning.
	Stream() (WindowModel, error)
}

// WindowModel computes the speech probabilities of one sound, window by window.
// It is not safe for concurrent use.
type WindowModel interface {
	// Next returns the probability of the next [Window] samples; a shorter last
	// window is padded with silence.
	Next(window []float32) (float32, error)
	// Close frees the memory. Call it before the Model's Close.
	Close() error
}

// Detect returns the segments of speech in a recording, in order, in samples at
// 16 kHz. The model gets the leveled recording (audio.PCM.Leveled), because
// networks miss quiet speech. The borders of [Segments] are refined from the 32
// ms grid to about 10 ms, using the level of the sound and the interpolated
// probability. A recording without speech is not an error.
func Detect(ctx context.Context, m Model, pcm *audio.PCM, opt Options) ([]Segment, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	probs, err := m.Probabilities(ctx, pcm.Leveled())
	if err != nil {
		return nil, fmt.Errorf("voice activity: %w", err)
	}
	return Refined(probs, pcm, opt)
}

// Refined is Detect for a recording whose probabilities are already known.
func Refined(probs []float32, pcm *audio.PCM, opt Options) ([]Segment, error) {
	if want := Windows(pcm.Len()); len(probs) != want {
		return nil, fmt.Errorf("voice activity: expected %d probabilities for %d samples, the model gave %d", want, pcm.Len(), len(probs))
	}
	s, err := NewStream(pcm, opt)
	if err != nil {
		return nil, err
	}
	return append(s.Feed(probs), s.Flush()...), nil
}

// Windows returns the number of windows that cover the given number of samples.
func Windows(samples int) int { return (samples + Window - 1) / Window }
