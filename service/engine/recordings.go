package engine

import (
	"context"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// Recordings examines recordings without models. It implements service.Prober.
type Recordings struct{}

// Probe determines the length of a recording.
func (Recordings) Probe(ctx context.Context, path, _ string) (seconds float64, err error) {
	info, err := audio.Probe(ctx, audio.File(path), audio.Options{})
	return info.Duration, err
}

// CheckHead returns a permanent error if a file that begins with head is not a
// recording.
func (Recordings) CheckHead(filename string, head []byte) error {
	return spec.Permanent(audio.CheckHead(filename, head))
}
