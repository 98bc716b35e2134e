package wordtimes

import (
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
)

const (
	// frame is the grid of word times, in samples; positionFrames is the number
	// of frames per encoder position.
	frame          = audio.SampleRate / 100
	positionFrames = positionSamples / frame
	// shortGap is the longest gap in speech, in frames, inside a word.
	shortGap = 10
	// sliver is the shortest speech, in frames, that may be a separate word if
	// an end of the window cuts it off from other speech.
	sliver = 15
	// quiet is the level, in decibels below the window's loud frames, of a
	// silent frame. quietFrames of silence are a pause, detected or not.
	quiet       = 35
	quietFrames = 30
)

// clock counts only the frames of speech.
type clock struct {
	frames []int // index in the window of each frame of speech
	begins []int // for each frame of speech, the clock's time at the start of its stretch
	ends   []int // and its end
	at     []int // for each frame of the window, and for its end, the speech before it
}

// newClock counts the speech in a window, except slivers and quiet pauses.
func newClock(samples []float32, speech []audio.Span) *clock {
	total := len(samples) / frame
	spoken := make([]bool, total)
	last := make(map[int]bool) // frames that end a stretch, even if the next one follows directly
	for _, s := range withoutSlivers(speech, len(samples)) {
		last[min(s.End/frame, total)-1] = true
		for f := (s.Start + frame - 1) / frame; f < min(s.End/frame, total); f++ {
			spoken[f] = true
		}
	}
	silence(spoken, dsp.Levels(samples, frame, frame))
	c := &clock{at: make([]int, total+1)}
	for f, is := range spoken {
		k := len(c.frames)
		if c.at[f] = k; !is {
			continue
		}
		begin := k
		if k > 0 && !last[c.frames[k-1]] && f-c.frames[k-1] <= shortGap {
			begin = c.begins[k-1]
		}
		c.frames, c.begins = append(c.frames, f), append(c.begins, begin)
	}
	c.at[total] = len(c.frames)
	c.ends = make([]int, len(c.frames))
	for k := len(c.frames) - 1; k >= 0; k-- {
		c.ends[k] = k + 1
		if k+1 < len(c.frames) && c.begins[k+1] <= k {
			c.ends[k] = c.ends[k+1]
		}
	}
	return c
}

// withoutSlivers removes slivers that the ends of the window cut off from other
// speech, unless nothing else remains.
func withoutSlivers(speech []audio.Span, samples int) []audio.Span {
	if n := len(speech); n > 1 && speech[n-1].Len() < sliver*frame && speech[n-1].End >= samples {
		speech = speech[:n-1]
	}
	if len(speech) > 1 && speech[0].Len() < sliver*frame && speech[0].Start <= 0 {
		speech = speech[1:]
	}
	return speech
}

// silence removes the pauses that the levels show from the spoken frames.
func silence(spoken []bool, levels []float64) {
	var voiced []float64
	for f, is := range spoken {
		if is {
			voiced = append(voiced, levels[f])
		}
	}
	if len(voiced) == 0 {
		return
	}
	slices.Sort(voiced)
	limit := voiced[len(voiced)*9/10] - quiet
	for f := 0; f < len(spoken); f++ {
		from := f
		for f < len(spoken) && levels[f] < limit {
			f++
		}
		if f-from >= quietFrames {
			clear(spoken[from:f])
		}
	}
}

// pause returns the frames between a frame of speech and the one before it.
func (c *clock) pause(k int) int {
	if k == 0 {
		return 0
	}
	return c.frames[k] - c.frames[k-1] - 1
}
