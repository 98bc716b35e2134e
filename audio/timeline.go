package audio

import (
	"math"
	"sort"
)

// longestGap bounds the total time without samples, like the longest recording.
// A gap beyond it counts as an error of the time stamps and is left out.
const longestGap = 5 * 3600

// mark is a sample and the time at which it is heard.
type mark struct {
	Sample  int     // at SampleRate
	Seconds float64 // from the beginning of the recording
}

// Timeline maps samples to the times at which they are heard, if these do not
// follow from the samples' indexes: a track may begin later than its file,
// packets may be missing, time stamps may jump. Samples between two marks are
// contiguous; the zero value means samples without gaps.
type Timeline []mark

// Start returns when a sound at a position (seconds of samples) starts.
func (t Timeline) Start(seconds float64) float64 {
	return t.at(seconds, sort.Search(len(t), func(i int) bool { return t[i].position() > seconds+1e-9 }))
}

// End returns the time of a position at which a sound ends: before a gap there.
func (t Timeline) End(seconds float64) float64 {
	return t.at(seconds, sort.Search(len(t), func(i int) bool { return t[i].position() >= seconds-1e-9 }))
}

// at maps a position by the first n marks.
func (t Timeline) at(seconds float64, n int) float64 {
	if n == 0 {
		return seconds
	}
	return t[n-1].Seconds + seconds - t[n-1].position()
}

func (m mark) position() float64 { return float64(m.Sample) / SampleRate }

// splitGap is the shortest gap, in seconds, that splits speech.
const splitGap = 0.1

// Split splits spans at gaps of the recording. Parts shorter than 0.1 s are
// dropped: they are the margin around the speech beyond the gap.
func (t Timeline) Split(spans []Span) []Span {
	if len(t) == 0 {
		return spans
	}
	var out []Span
	keep := func(s Span) {
		if float64(s.Len()) >= splitGap*SampleRate {
			out = append(out, s)
		}
	}
	next := 0
	for _, s := range spans {
		for next < len(t) && t[next].Sample <= s.Start {
			next++
		}
		whole := true
		for ; next < len(t) && t[next].Sample < s.End; next++ {
			if t[next].Seconds-t.at(t[next].position(), next) >= splitGap {
				keep(Span{s.Start, t[next].Sample})
				s.Start, whole = t[next].Sample, false
			}
		}
		if whole {
			out = append(out, s)
		} else {
			keep(s)
		}
	}
	return out
}

// Tolerances of time stamps in seconds. Containers round them to milliseconds,
// and live recorders write a packet's time of arrival.
const (
	startTolerance = 0.005 // of the first time stamp
	stampTolerance = 0.03
	backTolerance  = 1.0 // a time stamp further back begins another recording after this one
)

// mostMarks bounds the memory for a recording's time stamps.
const mostMarks = 1 << 17

// stamps collects the time stamps of decoded frames.
type stamps struct {
	marks   []stampMark
	played  float64 // seconds of samples so far
	offset  float64 // of the time stamps from played
	latest  float64 // offset of the last mark; time does not go back when a slow clock does
	shift   float64 // added to time stamps after an implausible one
	late    float64 // seconds from the beginning of the file to time 0 of the time stamps
	dropped bool    // a gap was not kept
	frames  int
}

type stampMark struct{ played, time float64 }

// frame adds a frame that is heard at a time; NaN if it has no time stamp.
func (s *stamps) frame(time, length float64) {
	defer func() { s.played += length; s.frames++ }()
	if math.IsNaN(time) {
		return
	}
	offset := time + s.shift - s.played
	change := offset - s.offset
	switch {
	case s.frames == 0 && math.Abs(change) < startTolerance || s.frames > 0 && math.Abs(change) < stampTolerance:
		return
	case change < -backTolerance, change < 0 && s.frames == 0:
		s.shift -= change
		return
	case offset > longestGap || len(s.marks) == mostMarks:
		s.shift -= change
		s.dropped = true
		return
	}
	if s.offset = offset; offset > s.latest {
		s.latest = offset
		s.marks = append(s.marks, stampMark{s.played, s.played + offset})
	}
}

// end returns the time at which samples end that last a number of seconds.
func (s *stamps) end(seconds float64) float64 { return s.late + s.latest + seconds }

// timeline returns the marks of the samples of a PCM.
func (s *stamps) timeline() (t Timeline) {
	if s.late >= startTolerance && (len(s.marks) == 0 || s.marks[0].played > 0) {
		t = Timeline{{0, s.late}}
	}
	for _, m := range s.marks {
		t = append(t, mark{int(math.Round(m.played * SampleRate)), m.time + s.late})
	}
	return t
}
