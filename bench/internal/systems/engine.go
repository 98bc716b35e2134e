// Package systems obtains transcripts from other recognizers, so that package
// bench measures them like Otograph: servers with OpenAI's transcription
// endpoint, programs, and files. It detects the output's format by the content
// and does not trust it: size and time are limited, and an output that is no
// transcript is a failure of that system, with the reason.
package systems

import (
	"context"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/datasets"
)

// Engine is a recognizer other than Otograph's.
type Engine interface {
	// Transcribe returns a recording's result and its cost; the result's Ran
	// states the filled fields. An error concerns the recognizer and does not
	// end the run.
	Transcribe(ctx context.Context, item datasets.Item) (*otograph.Result, Cost, error)
	// Identity identifies the recognizer, so that an interrupted run only
	// continues with the same one.
	Identity() string
}

// Cost is the cost of one run of one recording.
type Cost struct {
	Audio float64 `json:"audio"` // seconds of sound
	Wall  float64 `json:"wall"`  // wall-clock seconds
	CPU   float64 `json:"cpu"`   // seconds of processor time of the process
	// FirstSegment is the number of seconds until the first window of speech
	// was transcribed; 0 if there was none.
	FirstSegment float64        `json:"first_segment"`
	PeakRSS      int64          `json:"peak_rss"` // bytes
	Stats        otograph.Stats `json:"stats"`    // counted work, and time by stages
}
