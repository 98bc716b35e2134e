// Package events detects sound events: the classes of AudioSet (YAMNet's 521)
// in a recording, with their times.
//
// A [Tagger] scores every class in overlapping windows. [Detect] turns the
// scores into events as they arrive: memory does not grow with the recording.
// Package events/tag implements a Tagger on published networks.
package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// Grid maps frames to times: frame i covers the window [i·Hop, i·Hop + Window).
type Grid struct {
	Window, Hop float64 // seconds
}

// cell returns the part of the recording that frame i stands for: the middle of
// its window, one hop long, adjacent to other cells. The first extends to the
// beginning of the recording; the caller extends the last to its end.
func (g Grid) cell(i int) (start, end float64) {
	before := max(0, (g.Window-g.Hop)/2)
	start = float64(i)*g.Hop + before
	end = start + g.Hop
	if i == 0 {
		start = 0
	}
	return start, end
}

// Tagger scores recordings. Implementations are safe for concurrent use.
type Tagger interface {
	// Grid returns the times of the frames.
	Grid() Grid
	// Scores calls yield with the scores of every frame, in order:
	// spec.NumEventClasses numbers from 0 to 1 by class index, valid until
	// yield returns. An error of yield stops Scores, which returns it. A
	// recording that is not empty has a frame, and its frames reach its end.
	Scores(ctx context.Context, pcm *audio.PCM, yield func(frame int, scores []float32) error) error
	// Close frees the model; it may be called more than once.
	Close() error
}

// Event is a detected sound.
type Event struct {
	// Start and End are seconds, rounded to 0.01 within the recording and
	// accurate to about one second.
	Start, End float64
	Class      spec.EventClass
	// Confidence is the mean score of the frames in which the class exceeds the
	// threshold, so it exceeds the threshold as well. Scores are compared and
	// averaged with the four digits of results.
	Confidence float64
	// Peak is the largest of those scores.
	Peak float64

	frames int // whose scores exceed the threshold
}

// closeGap is the longest pause in seconds inside one event.
const closeGap = 1.0

// Taggers mistake breaths, clicks and pauses of people who speak for animals
// and machines. So within besideSpeech seconds of speech, an event needs a peak
// of leastBesideSpeech and two frames: windows overlap by half, so that a sound
// is in two. docs/measurements/sounds.md counts the events that remain.
const besideSpeech, leastBesideSpeech = 5, 0.5

// open is an event that may still grow.
type open struct {
	frames     int // frames that exceed the threshold; 0 if no event is open
	sum, peak  float64
	start, end float64 // seconds
	last       int     // last frame
}

// event returns the open event, clipped to the recording.
func (o *open) event(class int, duration float64) Event {
	return Event{
		Start: within(o.start, duration), End: within(o.end, duration), Class: spec.EventClassAt(class),
		Confidence: round4(o.sum / float64(o.frames)), Peak: o.peak, frames: o.frames,
	}
}

// within rounds seconds to hundredths, within the recording.
func within(seconds, duration float64) float64 {
	// A thousandth of a hundredth absorbs the error of the multiplication,
	// which turns 0.29 s into 28.999….
	last := math.Floor(duration*100 + 1e-3)
	return min(math.Round(seconds*100), last) / 100
}

// round4 rounds a score to the four digits of results.
func round4(score float64) float64 { return math.Round(score*1e4) / 1e4 }

// speech and silence are the indices of two classes.
var speech, silence = index("Speech"), index("Silence")

func index(class string) int {
	c, _ := spec.LookupEventClass(class)
	return c.Index
}

// beside reports whether an event, neither speech nor silence, is within
// besideSpeech seconds of a frame with speech; these start at spoken.
func beside(e Event, spoken []float64) bool {
	if e.Class.Index == speech || e.Class.Index == silence {
		return false
	}
	i, _ := slices.BinarySearch(spoken, e.Start-besideSpeech)
	return i < len(spoken) && spoken[i] <= e.End+besideSpeech
}

// Detect detects the events of a recording. For each class, it joins
// neighboring frames above the threshold across pauses of up to one second. An
// event beside speech needs a peak of 0.5, apart from speech and silence.
// Events are ordered by start, then by class index.
//
// Errors: ErrOptions, the tagger's, the context's.
func Detect(ctx context.Context, t Tagger, pcm *audio.PCM, opt Options) ([]Event, error) {
	s, err := NewStream(t.Grid(), opt)
	if err != nil {
		return nil, err
	}
	var found []Event
	err = t.Scores(ctx, pcm, func(frame int, scores []float32) error {
		if frame != s.next {
			return fmt.Errorf("events: the tagger gave frame %d, expected frame %d", frame, s.next)
		}
		list, err := s.Push(scores)
		found = append(found, list...)
		return err
	})
	if err != nil {
		return nil, err
	}
	found = append(found, s.Flush(pcm.Duration())...)
	Sort(found)
	return found, nil
}

// Sort orders events as Detect does.
func Sort(list []Event) {
	slices.SortFunc(list, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Class.Index, b.Class.Index))
	})
}

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
