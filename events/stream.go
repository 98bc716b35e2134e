package events

import (
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/spec"
)

// Stream finds the events of a sound while it grows, by the rules of [Detect].
// It returns an event once no later frame can change it: six seconds after its
// end. It is not safe for concurrent use.
type Stream struct {
	grid    Grid
	opt     Options
	classes []int
	state   [spec.NumEventClasses]open
	next    int       // number of the next frame
	closed  []Event   // not yet returned
	spoken  []float64 // the starts of the frames with speech that may still count
}

// NewStream returns a stream over the frames of a tagger. Errors: ErrOptions.
func NewStream(grid Grid, opt Options) (*Stream, error) {
	classes, err := opt.wanted()
	if err != nil {
		return nil, err
	}
	if !(grid.Hop > 0) || !(grid.Window > 0) {
		return nil, fmt.Errorf("events: the tagger has windows of %v s every %v s", grid.Window, grid.Hop)
	}
	return &Stream{grid: grid, opt: opt, classes: classes}, nil
}

// Push takes the scores of the next frame, as Tagger.Scores yields them, and
// returns the events that are now final, ordered by their ends.
func (s *Stream) Push(scores []float32) ([]Event, error) {
	if len(scores) != spec.NumEventClasses {
		return nil, fmt.Errorf("events: the tagger gave frame %d with %d scores, expected %d", s.next, len(scores), spec.NumEventClasses)
	}
	start, end := s.grid.cell(s.next)
	if round4(float64(scores[speech])) > defaultThreshold {
		s.spoken = append(s.spoken, start)
	}
	oldest := start
	for _, c := range s.classes {
		o := &s.state[c]
		if o.frames > 0 && start-o.end > closeGap+1e-9 {
			s.closed = append(s.closed, o.event(c, math.Inf(1)))
			*o = open{}
		}
		if score := round4(float64(scores[c])); score > s.opt.Threshold {
			if o.frames == 0 {
				o.start = start
			}
			o.frames++
			o.sum += score
			o.peak = max(o.peak, score)
			o.end, o.last = end, s.next
		}
		if o.frames > 0 {
			oldest = min(oldest, o.start)
		}
	}
	s.next++
	out := s.final(func(e Event) bool { return e.End+besideSpeech < start })
	for _, e := range s.closed {
		oldest = min(oldest, e.Start)
	}
	i, _ := slices.BinarySearch(s.spoken, oldest-besideSpeech)
	s.spoken = s.spoken[i:]
	return out, nil
}

// Flush ends the sound, of a length in seconds, and returns the last events.
func (s *Stream) Flush(duration float64) []Event {
	for i, e := range s.closed {
		s.closed[i].Start, s.closed[i].End = within(e.Start, duration), within(e.End, duration)
	}
	for _, c := range s.classes {
		o := &s.state[c]
		if o.frames == 0 {
			continue
		}
		if o.last == s.next-1 {
			o.end = duration // the last frame extends to the end
		}
		s.closed = append(s.closed, o.event(c, duration))
		*o = open{}
	}
	return s.final(func(Event) bool { return true })
}

// final removes the closed events for which done is true, and returns those
// among them that are not the breath, click or pause of a speaker.
func (s *Stream) final(done func(Event) bool) (out []Event) {
	s.closed = slices.DeleteFunc(s.closed, func(e Event) bool {
		if !done(e) {
			return false
		}
		if e.Peak >= leastBesideSpeech && e.frames >= 2 || !beside(e, s.spoken) {
			out = append(out, e)
		}
		return true
	})
	return out
}
