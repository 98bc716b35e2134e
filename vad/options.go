package vad

import (
	"fmt"
	"math"
)

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
	return Options{
		Threshold:  0.35,
		MinSpeech:  0.25,
		MinSilence: 0.1,
		SpeechPad:  0.03,
	}
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
