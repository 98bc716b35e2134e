package ctc

import (
	"math"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/border"
)

// Spoken is a word with the times at which a recognizer's tokens fire, and the
// times that Refine makes of them; all in seconds of the file.
type Spoken struct {
	Text string
	// First and Last are the middles of the rows of its first and last token.
	First, Last float64
	// Fresh reports that nothing was said right before it: the word begins a
	// window, or a pause precedes it.
	Fresh bool
	// Start and End are set by Refine.
	Start, End float64
}

const (
	// Pause is how long (seconds) no token must have fired before a fresh word.
	Pause = 0.5
	// chunk is how many frames of 10 ms are listened to at a time.
	chunk = 3000
	// shortest is the least length of a word, in frames.
	shortest = 4
)

// Refine sets the words' Start and End. A CTC model's tokens fire somewhere
// inside of a word, 0.1 s late on the mean; a word begins at the median of where
// a small network hears a border, given the sound and the letters on both
// sides. A word ends where the next one begins, or with the stretch of speech.
// Words are in order, speech too (samples at 16 kHz).
func Refine(pcm *audio.PCM, words []Spoken, speech []audio.Span) {
	net := border.Load()
	var sound *border.Sound
	until, at := -1, 0    // of sound, in frames; of speech, what may lie in it
	before := math.MinInt // border of the word before
	for i := range words {
		w := &words[i]
		fire := int(math.Round(w.First * 100))
		if fire > until {
			from := fire + border.Earliest
			until = fire + chunk
			for at < len(speech) && speech[at].End < from*audio.SampleRate/100 {
				at++
			}
			sound = border.Listen(pcm, from, until, speech[at:])
		}
		text, near := "", border.Farthest
		if i > 0 {
			text = words[i-1].Text
			if !w.Fresh {
				near = min(fire-int(math.Round(words[i-1].Last*100)), border.Farthest-1)
			}
		}
		letters := net.Letters(text, w.Text)
		before = begin(net, sound, &letters, fire, near, before+shortest, w.Fresh)
		w.Start = min(max(float64(before)/100, 0), pcm.Duration())
	}
	setEnds(words, speech)
}

// begin returns the border of a word whose first token fires in a frame, near
// frames after the last token of the word before; no earlier than from.
func begin(net *border.Net, sound *border.Sound, letters *border.Letters, fire, near, from int, fresh bool) int {
	var scores [border.Count]float64
	lag := net.Lag[0]
	if fresh {
		lag, near = net.Lag[1], border.Farthest
	}
	top := math.Inf(-1)
	for k := range scores {
		b := fire + border.Earliest + k
		if b < from && k < border.Count-1 {
			scores[k] = math.Inf(-1)
			continue
		}
		scores[k] = net.Score(sound, b, letters) + float64(lag[k]) +
			float64(net.Near[min(max(border.Earliest+k+near, -border.Farthest), border.Farthest)+border.Farthest])
		top = max(top, scores[k])
	}
	var sum float64
	for k, s := range scores {
		scores[k] = math.Exp(s - top)
		sum += scores[k]
	}
	half := 0.0
	for k, p := range scores {
		if half += p; half >= sum/2 {
			return fire + border.Earliest + k
		}
	}
	return fire
}

const (
	// hold is how long (seconds) a word may last beyond its last token while the
	// voice detector hears speech on, lastHold that for the last word before a
	// pause.
	hold     = 0.6
	lastHold = 0.3
)

// setEnds lets each word last until the next one begins or the stretch of speech
// that holds its last token ends.
func setEnds(words []Spoken, speech []audio.Span) {
	k := 0
	for i := range words {
		w := &words[i]
		for k < len(speech)-1 {
			if _, b := speech[k].Seconds(); b >= w.Last {
				break
			}
			k++
		}
		end, longest := math.Inf(1), lastHold
		if len(speech) > 0 {
			a, b := speech[k].Seconds()
			end = b
			if k > 0 && a > w.Last { // in a pause: tokens may fire a little after the speech
				if _, before := speech[k-1].Seconds(); w.Last-before < a-w.Last {
					end = w.Last
				}
			}
		}
		if i+1 < len(words) {
			if end = min(end, words[i+1].Start); !words[i+1].Fresh {
				longest = hold
			}
		}
		w.End = max(min(end, w.Last+longest), w.Start+shortest/100.0)
		if i+1 < len(words) {
			w.End = min(w.End, max(words[i+1].Start, w.Start))
		}
	}
}
