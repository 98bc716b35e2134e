// Package vad finds the stretches of speech in a recording.
//
// A [Model] returns the probability of speech for every 32 ms. [Detect] turns
// probabilities into segments by the Silero project's published rules, exactly
// as its code does, and refines their borders. The package contains no network;
// vad/silero implements one.
package vad

import (
	"context"
	"fmt"
	"math"

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
// networks miss quiet speech. The segments' borders are refined from the 32 ms
// grid to about 10 ms, using the level of the sound and the interpolated
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

// Options configures the detection of speech. The zero value is not useful;
// start with [DefaultOptions].
type Options struct {
	// Threshold is the speech probability, 0 to 1, at which a window counts as
	// speech; higher is more conservative.
	Threshold float64
	// Exit is the probability below which speech may end; between the two
	// thresholds nothing changes. Zero means Threshold − 0.15, at least 0.01.
	Exit float64
	// MinSpeech is the shortest stretch, in seconds, like all lengths here.
	MinSpeech float64
	// MinSilence is the shortest pause that ends a segment.
	MinSilence float64
	// SpeechPad is added on both sides; a shorter pause is divided equally.
	SpeechPad float64
	// MaxSpeech is the longest stretch. A longer one is cut at its longest
	// pause, or at the limit if it has none. Zero means no limit.
	MaxSpeech float64
	// MinSilenceAtMax is the shortest pause for MaxSpeech's cuts; 0: 98 ms.
	MinSilenceAtMax float64
}

// DefaultOptions returns the service's defaults: threshold 0.35, speech of at
// least 250 ms, pauses of at least 100 ms, 30 ms of padding, no MaxSpeech.
func DefaultOptions() Options {
	return Options{Threshold: 0.35, MinSpeech: 0.25, MinSilence: 0.1, SpeechPad: 0.03}
}

// validate returns an error that names the first field that is out of range.
func (o Options) validate() error {
	if !(o.Threshold >= 0 && o.Threshold <= 1) {
		return fmt.Errorf("vad_threshold: expected 0 to 1, got %v", o.Threshold)
	}
	if !(o.Exit >= 0 && o.Exit <= 1) {
		return fmt.Errorf("vad exit threshold: expected 0 to 1, got %v", o.Exit)
	}
	for _, d := range []struct {
		name  string
		value float64
	}{
		{"vad_min_speech_ms", o.MinSpeech},
		{"vad_min_silence_ms", o.MinSilence},
		{"vad_speech_pad_ms", o.SpeechPad},
		{"vad longest speech", o.MaxSpeech},
		{"vad shortest pause for a cut", o.MinSilenceAtMax},
	} {
		if d.value < 0 {
			return fmt.Errorf("%s: expected 0 or more, got %v s", d.name, d.value)
		}
	}
	return nil
}

// exit returns the lower threshold, by get_speech_timestamps' rule.
func (o Options) exit() float64 {
	if o.Exit > 0 {
		return o.Exit
	}
	return math.Max(o.Threshold-0.15, 0.01)
}
