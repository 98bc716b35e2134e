package audio

import (
	"math"
	"sort"
	"strconv"
	"strings"
)

// longestGap bounds the time without samples that a recording's time stamps
// claim in all: five hours, like the longest recording. What goes beyond it is
// taken for an error of the time stamps, and the samples follow each other.
const longestGap = 5 * 3600.0

// mark says when a sample is heard.
type mark struct {
	Sample  int     // at SampleRate
	Seconds float64 // from the beginning of the recording
}

// Timeline holds when the samples of a recording are heard, where that does not
// follow from their number: a track that begins later than its file, packets that
// were never sent or are lost, time stamps that jump. The samples from one mark
// to the next follow each other; the zero value is that of samples without gaps.
type Timeline []mark

// Start returns when the sound begins that is at a position (seconds of samples).
func (t Timeline) Start(seconds float64) float64 {
	return t.at(seconds, sort.Search(len(t), func(i int) bool { return t[i].position() > seconds+1e-9 }))
}

// End returns when the sound ends that ends at a position: before a gap there.
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

// splitGap is the shortest gap, in seconds, that parts speech.
const splitGap = 0.1

// Split parts the spans in which there is a gap of the recording. A part of less
// than splitGap is left out: it is the margin around the speech beyond the gap.
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

// Tolerances of time stamps in seconds. Containers round them to milliseconds, and
// live recorders write them when a packet arrives.
const (
	startTolerance = 0.005 // of the first one
	stampTolerance = 0.03
	backTolerance  = 1.0 // beyond it, time that goes back is another recording after this one
)

// mostMarks bounds the memory that the time stamps of a recording take.
const mostMarks = 1 << 17

// stamps collects the time stamps of decoded frames.
type stamps struct {
	marks   []stampMark
	played  float64 // seconds of samples so far
	offset  float64 // of the time stamps against them
	latest  float64 // offset of the last mark; time does not go back where a slow clock does
	shift   float64 // added to time stamps after one that made no sense
	dropped bool    // a gap was not kept
	frames  int
}

type stampMark struct{ played, time float64 }

// frame adds a frame of the given length that is heard at a time; NaN is a frame
// without a time stamp.
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

// end returns when the last frame ends.
func (s *stamps) end() float64 { return s.played + s.latest }

// timeline returns the marks of the samples of a PCM.
func (s *stamps) timeline() (t Timeline) {
	for _, m := range s.marks {
		t = append(t, mark{int(math.Round(m.played * SampleRate)), m.time})
	}
	return t
}

// framePrefix begins the lines in which ffmpeg's filter ashowinfo describes frames.
const framePrefix = "[Parsed_ashowinfo_"

// showFrame reads such a line: the time in seconds (NaN without one) and length
// of a frame. ok is false for other lines of the filter.
func showFrame(text string) (time, length float64, ok bool) {
	pts, ok1 := fieldAfter(text, " pts_time:")
	samples, ok2 := fieldAfter(text, " nb_samples:")
	rate, ok3 := fieldAfter(text, " rate:")
	if !ok1 || !ok2 || !ok3 {
		return 0, 0, false
	}
	time, err := strconv.ParseFloat(pts, 64)
	if err != nil || math.IsInf(time, 0) {
		time = math.NaN()
	}
	n, err := strconv.Atoi(samples)
	hz, err2 := strconv.Atoi(rate)
	if err != nil || err2 != nil || n < 0 || hz <= 0 {
		return 0, 0, false
	}
	return time, float64(n) / float64(hz), true
}

// fieldAfter returns the word after a key.
func fieldAfter(text, key string) (string, bool) {
	_, rest, ok := strings.Cut(text, key)
	word, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	return word, ok
}
