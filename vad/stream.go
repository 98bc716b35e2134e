package vad

import "github.com/otograph/otograph/audio"

// Stream finds the segments of a sound while it grows: fed in pieces of any
// size, it returns the segments of [Detect]. It returns each as soon as nothing
// that may follow can move its borders: with the default options, a third of a
// second after its end. It is not safe for concurrent use.
type Stream struct {
	opt     Options
	sound   audio.Sound
	cut     *cutter
	probs   []float32 // of the windows from first on
	first   int
	now     int  // position after the last window
	whole   bool // the sound has ended
	origin  int  // no segment begins before it
	dropped int  // segments of the cutter that are no longer in its list

	// The last segment that has begun: number i of the cutter's.
	i        int
	fine     Segment // refined, without padding
	start    int     // with its padding
	measured bool    // fine.End is known
	given    bool    // the segment was returned
}

// NewStream returns a stream over the segments of a sound.
func NewStream(sound audio.Sound, opt Options) (*Stream, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	return &Stream{opt: opt, sound: sound, cut: newCutter(opt), i: -1}, nil
}

// Feed takes the probabilities of the next windows, which the sound must have,
// and returns the segments that are now decided.
func (s *Stream) Feed(probs []float32) (out []Segment) {
	for _, p := range probs {
		s.probs = append(s.probs, p)
		s.cut.window(s.now, float64(p))
		s.now += Window
		out = s.settle(out)
	}
	s.forget()
	return out
}

// Flush ends the sound and returns the remaining segments.
func (s *Stream) Flush() []Segment {
	s.now, s.whole = s.sound.Len(), true
	s.cut.flush(s.now)
	return s.settle(nil)
}

// Open returns the start of speech that has not ended; speaking reports whether
// there is any. It is certain once it is longer than MinSpeech; until then it
// may be dropped. A settled start is the segment's; before, the start is on the
// grid of [Window].
func (s *Stream) Open() (start int, settled, certain, speaking bool) {
	i := s.dropped + len(s.cut.out)
	last, certain := s.segment(i)
	if s.i == i {
		return s.start, true, certain, true
	}
	return last.Start, false, certain, s.cut.speaking
}

// Pending reports whether a segment has ended that Feed has not yet returned.
func (s *Stream) Pending() bool { return s.i >= 0 && !s.given && s.closed(s.i) || s.closed(s.i+1) }

// Cut ends unfinished speech at the present end of the sound and returns the
// remaining segments. Later ones begin after the cut.
func (s *Stream) Cut() (out []Segment) {
	s.whole = true
	s.cut.flush(s.now)
	out = s.settle(nil)
	s.whole, s.origin = false, s.now
	s.i, s.dropped, s.cut.out = -1, 0, nil
	return out
}

// Needed returns the first position that the stream may still read; the
// segments to come begin there or later.
func (s *Stream) Needed() int {
	at := s.now
	if s.cut.speaking {
		at = s.cut.start
	}
	if s.i >= 0 && !s.given {
		at = min(at, s.start)
	} else if next, ok := s.segment(s.i + 1); ok {
		at = min(at, next.Start)
	}
	return max(at-startReach-reference, 0)
}

// segment returns a segment of the cutter by its number. An open segment has
// the earliest end that is still possible.
func (s *Stream) segment(i int) (seg Segment, ok bool) {
	if i -= s.dropped; i < len(s.cut.out) {
		return s.cut.out[i], true
	}
	c := s.cut
	if seg = (Segment{Start: c.start, End: min(s.now, s.sound.Len())}); c.end != none {
		seg.End = c.end
	}
	return seg, c.speaking && float64(seg.Len()) > c.minSpeech
}

// closed reports whether the end of a segment is known.
func (s *Stream) closed(i int) bool { return i-s.dropped < len(s.cut.out) }

// settle appends the segments that are decided to out.
func (s *Stream) settle(out []Segment) []Segment {
	for {
		if s.i >= 0 && !s.measured && !s.measure() {
			return out
		}
		next, ok := s.segment(s.i + 1)
		switch {
		case ok && (s.closed(s.i+1) || next.Len() >= loudReach):
			out = s.begin(next, out)
		case s.i >= 0 && !s.given && s.alone():
			s.given = true
			end := s.fine.End + s.samples(s.opt.SpeechPad)
			if s.whole {
				end = min(end, s.now)
			}
			out = append(out, Segment{Start: s.start, End: end})
		default:
			return out
		}
	}
}

// measure refines the last segment's end, once the sound after it is known.
func (s *Stream) measure() bool {
	if !s.closed(s.i) {
		return false
	}
	seg, _ := s.segment(s.i)
	after := s.now
	if next, ok := s.segment(s.i + 1); ok {
		after = next.Start
	} else if enough := seg.End + Window + reference; !s.whole && (s.now < enough || s.cut.speaking && s.cut.start < enough) {
		return false
	}
	s.fine.End = max(s.refinedEnd(seg, after), min(seg.End, s.fine.Start+s.samples(s.opt.MinSpeech)+1))
	s.measured = true
	return true
}

// begin refines the start of the next segment, and appends the one before it to
// out. Pauses do not become shorter than MinSilence.
func (s *Stream) begin(next Segment, out []Segment) []Segment {
	if s.i < 0 {
		s.fine.Start = s.refinedStart(next, s.origin)
		s.start = max(s.origin, s.fine.Start-s.samples(s.opt.SpeechPad))
	} else {
		last, _ := s.segment(s.i)
		pause := min(s.samples(s.opt.MinSilence), next.Start-last.End)
		before := Segment{Start: s.start, End: s.fine.End}
		s.fine.Start = max(s.refinedStart(next, last.End), min(next.Start, before.End+pause))
		before.End = min(before.End, s.fine.Start-pause)
		s.start = s.fine.Start
		widen(&before.End, &s.start, toSamples(s.opt.SpeechPad))
		if !s.given {
			out = append(out, before)
		}
	}
	s.i++
	s.measured, s.given = false, false
	return out
}

// alone reports whether no later segment can reach the last one.
func (s *Stream) alone() bool {
	next := s.now
	if s.cut.speaking {
		next = s.cut.start
	}
	return s.whole || next-startReach >= s.fine.End+s.samples(s.opt.MinSilence)+2*s.samples(s.opt.SpeechPad)+2
}

func (s *Stream) samples(seconds float64) int { return int(toSamples(seconds)) }

// forget drops probabilities and segments that no border needs.
func (s *Stream) forget() {
	const often = 1024
	if drop := s.i - s.dropped; drop > often {
		s.cut.out = append([]Segment(nil), s.cut.out[drop:]...)
		s.dropped += drop
	}
	if drop := s.Needed()/Window - 2 - s.first; drop > often {
		s.probs = append([]float32(nil), s.probs[drop:]...)
		s.first += drop
	}
}
