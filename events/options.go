package events

import (
	"errors"
	"fmt"
	"math"

	"github.com/otograph/otograph/spec"
)

// ErrOptions marks an option out of range, named as in the service's JSON.
var ErrOptions = errors.New("option of sound events out of range")

// defaultThreshold is the confidence in the service's specification.
const defaultThreshold = 0.3

// Options configures the detected events.
type Options struct {
	// Threshold is the score (0 … 1) that a class must exceed in a frame.
	Threshold float64
	// Classes are the English names to look for; empty means all.
	Classes []string
}

// DefaultOptions returns the defaults of the service's specification.
func DefaultOptions() Options { return Options{Threshold: defaultThreshold} }

// wanted returns the indexes of the classes to look for, ascending, or
// ErrOptions. The error for an unknown class suggests the nearest name.
func (o Options) wanted() ([]int, error) {
	if math.IsNaN(o.Threshold) || o.Threshold < 0 || o.Threshold > 1 {
		return nil, fmt.Errorf("%w: audio_events_threshold must be between 0 and 1, got %v", ErrOptions, o.Threshold)
	}
	var in [spec.NumEventClasses]bool
	for _, name := range o.Classes {
		c, ok := spec.LookupEventClass(name)
		if !ok {
			return nil, fmt.Errorf("%w: audio_events_classes: there is no class %q; the nearest is %q", ErrOptions, spec.Shorten(name), spec.NearestEventClass(name))
		}
		in[c.Index] = true
	}
	wanted := make([]int, 0, spec.NumEventClasses)
	for i := range in {
		if in[i] || len(o.Classes) == 0 {
			wanted = append(wanted, i)
		}
	}
	return wanted, nil
}
