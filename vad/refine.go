package vad

import (
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
)

// The level at a border is measured in frames of 5 ms every 2.5 ms.
const (
	frameHop = audio.SampleRate / 400
	frameLen = 2 * frameHop
)

// How far a border may move, in samples, and the level required there.
const (
	// Networks detect the end of speech up to half a second late and its
	// beginning up to 130 ms late; neither more than a window early.
	endReach, startReach = 16 * Window, 4 * Window
	// reference is the length of the pause that the background is measured in.
	reference, leastReference = audio.SampleRate * 3 / 10, audio.SampleRate / 25
	// loudReach is the length of the speech that is measured at a border.
	loudReach = audio.SampleRate / 2
	// dropout is the longest gap inside a sound at the beginning of speech.
	dropout = audio.SampleRate / 25
	// margin is the level above the background, in dB, from which a frame
	// belongs to speech that is leastContrast above it.
	margin, leastContrast = 8.0, 12.0
	// dynamicRange is the range of speech below its loudest frame, in dB.
	dynamicRange = 38.0
)

// refinedStart moves the start of a segment from the grid of Window to the
// start of the sound, within about 10 ms: to the first frame above the level of
// the pause. If speech hardly stands out from the pause, the border moves to
// the point at which the interpolated probability crosses the threshold. before
// is the previous segment's end. For the gain, see
// docs/measurements/speech-detection.md.
func (t *Stream) refinedStart(s Segment, before int) int {
	if s.Start <= 0 || s.Start == before {
		return s.Start // the recording's start, or a cut in speech
	}
	from := max(before, s.Start-startReach)
	speech := levels(t.sound, s.Start, min(s.End, s.Start+loudReach))
	floor, ok := audible(speech, levels(t.sound, max(before, from-reference), from))
	if !ok {
		return t.crossing(s.Start, t.opt.Threshold)
	}
	near := levels(t.sound, from, min(s.End, s.Start+Window+frameLen))
	at := min((s.Start-from)/frameHop, len(near)-1)
	for at < len(near) && near[at] < floor {
		at++
	}
	if at >= len(near) {
		return t.crossing(s.Start, t.opt.Threshold)
	}
	for i := at; i >= 0 && (at-i)*frameHop <= dropout; i-- {
		if near[i] >= floor {
			at = i
		}
	}
	return from + at*frameHop + frameHop/2
}

// refinedEnd is refinedStart for the end; after is the next segment's start.
func (t *Stream) refinedEnd(s Segment, after int) int {
	if s.End >= t.sound.Len() || s.End == after {
		return s.End
	}
	to := min(after, s.End+Window)
	speech := levels(t.sound, max(s.Start, s.End-endReach-loudReach), s.End)
	floor, ok := audible(speech, levels(t.sound, to, min(after, to+reference)))
	if !ok {
		return t.crossing(s.End, t.opt.exit())
	}
	from := max(s.Start, s.End-endReach)
	near := levels(t.sound, from, to)
	for i := len(near) - 1; i >= 0; i-- {
		if near[i] >= floor {
			return min(from+i*frameHop+frameLen-frameHop/2, to)
		}
	}
	return t.crossing(s.End, t.opt.exit())
}

// audible returns the level from which a frame is part of the speech, in dB. ok
// is false if the pause is too short or too loud to measure it.
func audible(speech, pause []float64) (floor float64, ok bool) {
	if len(speech) == 0 || len(pause)*frameHop < leastReference {
		return 0, false
	}
	slices.Sort(pause)
	background, loud := pause[len(pause)*9/10], slices.Max(speech)
	return max(background+margin, loud-dynamicRange), loud-background >= leastContrast
}

// levels returns the level of each whole frame between two samples, in dB.
func levels(sound audio.Sound, from, to int) []float64 {
	if to-from < frameLen {
		return nil
	}
	return dsp.Levels(sound.Samples(from, to), frameLen, frameHop)
}

// crossing returns where the interpolated probability crosses the threshold. A
// window's value stands a window before its end: networks respond late.
func (t *Stream) crossing(border int, threshold float64) int {
	i := border/Window - t.first
	if i <= 0 || i >= len(t.probs) {
		return border
	}
	a, b := float64(t.probs[i-1]), float64(t.probs[i])
	if (a-threshold)*(b-threshold) >= 0 {
		return border
	}
	return border + int(math.Round(((threshold-a)/(b-a)-1)*Window))
}
