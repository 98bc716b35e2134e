package vad

import (
	"cmp"
	"math"

	"github.com/otograph/otograph/audio"
)

// Segment is a stretch of speech, in samples at 16 kHz.
type Segment = audio.Span

// Window is the number of samples per probability: 32 ms at 16 kHz.
const Window = 512

// silenceAtMax is the published default of Options.MinSilenceAtMax.
const silenceAtMax = 0.098

// newCutter returns a cutter with the rules of get_speech_timestamps of Silero
// VAD 6.2.1. Speech begins with a window at or above Threshold. A window below
// the exit threshold marks a possible end, which a window at or above Threshold
// cancels. The segment ends there once the pause has lasted MinSilence. A segment
// longer than MaxSpeech (less a window and two pads) is cut at the longest
// canceled pause of more than MinSilenceAtMax, and speech continues after that
// pause. Without such a pause it is cut at the current window. Segments not
// longer than MinSpeech are dropped, except cut ones.
func newCutter(opt Options) *cutter {
	minPause := cmp.Or(opt.MinSilenceAtMax, silenceAtMax)
	longest := math.Inf(1)
	if opt.MaxSpeech > 0 {
		longest = toSamples(opt.MaxSpeech) - Window - 2*toSamples(opt.SpeechPad)
	}
	return &cutter{
		minSpeech: toSamples(opt.MinSpeech), minSilence: toSamples(opt.MinSilence),
		minPause: toSamples(minPause), longest: longest, enter: opt.Threshold, exit: opt.exit(), end: none,
	}
}

func toSamples(seconds float64) float64 { return seconds * audio.SampleRate }

const (
	none      = -1 // marks an unset sample position
	anyLength = -1 // a segment that is cut is kept
)

// cutter is the state between two windows.
type cutter struct {
	minSpeech, minSilence, minPause, longest float64 // samples
	enter, exit                              float64 // probabilities

	speaking bool
	start    int // of the current segment while speaking
	end      int // possible end: the first window of the current pause
	pause    int // longest pause at which it may be cut: start …
	pauseLen int // … and length
	out      []Segment
}

func (c *cutter) window(at int, p float64) {
	if p >= c.enter {
		if c.end != none { // the pause ended before it could end the segment
			// Among pauses of the same length, the first one is used.
			if n := at - c.end; float64(n) > c.minPause && n > c.pauseLen {
				c.pause, c.pauseLen = c.end, n
			}
			c.end = none
		}
		if !c.speaking {
			c.speaking, c.start = true, at
			return
		}
	}
	if !c.speaking {
		return
	}
	if float64(at-c.start) > c.longest {
		if c.pauseLen == 0 {
			c.close(at, anyLength)
			return
		}
		next := c.pause + c.pauseLen
		c.close(c.pause, anyLength)
		c.speaking, c.start = true, next
	}
	if p < c.exit {
		if c.end == none {
			c.end = at
		}
		if float64(at-c.end) >= c.minSilence {
			c.close(c.end, c.minSpeech)
		}
	}
}

// flush ends the recording.
func (c *cutter) flush(samples int) {
	if c.speaking {
		c.close(samples, c.minSpeech)
	}
}

// close ends the current segment, and keeps it if it is longer than least.
func (c *cutter) close(end int, least float64) {
	if float64(end-c.start) > least {
		c.out = append(c.out, Segment{Start: c.start, End: end})
	}
	c.speaking, c.end, c.pauseLen = false, none, 0
}

// widen moves the borders of a pause, the end of one segment and the start of
// the next, by pad samples; they share a pause of less than two pads.
func widen(end, start *int, pad float64) {
	if gap := *start - *end; float64(gap) < 2*pad {
		*end, *start = *end+gap/2, max(0, *start-gap/2)
		return
	}
	*end, *start = int(float64(*end)+pad), int(max(0, float64(*start)-pad))
}
