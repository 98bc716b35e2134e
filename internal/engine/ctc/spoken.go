package ctc

import (
	"math"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/wordtimes"
)

// Spoken is a word with its tokens' times and Refine's, in seconds.
type Spoken struct {
	Text string
	// First and Last are the middles of the rows of its first and last token.
	First, Last float64
	// Fresh reports that the word begins a window or follows a pause.
	Fresh bool
	// Start and End are set by Refine.
	Start, End float64
}

const (
	// Pause is the time (seconds) without a token before a fresh word.
	Pause = 0.5
	// chunk is the number of 10 ms frames that are processed at a time.
	chunk = 3000
	// shortest is the minimum length of a word in frames.
	shortest = 4
)

// Refine sets the words' Start and End. A CTC model's tokens fire inside of
// words, on average 0.1 s after their start. A word begins at the median of the
// border's distribution, which a small network computes from the sound and the
// letters around. A word ends at the start of the next or with the stretch of
// speech. words and speech (samples at 16 kHz) are in order.
func Refine(pcm *audio.PCM, words []Spoken, speech []audio.Span) {
	net := wordtimes.Borders()
	var sound *wordtimes.BorderSound
	until, at := -1, 0    // end of the loaded sound in frames; next stretch of speech that may overlap it
	before := math.MinInt // border of the previous word
	for i := range words {
		w := &words[i]
		fire := int(math.Round(w.First * 100))
		if fire > until {
			from := fire + wordtimes.EarliestBorder
			until = fire + chunk
			for at < len(speech) && speech[at].End < from*audio.SampleRate/100 {
				at++
			}
			sound = wordtimes.NewBorderSound(pcm, from, until, speech[at:])
		}
		text, near := "", wordtimes.FarthestWord
		if i > 0 {
			text = words[i-1].Text
			if !w.Fresh {
				near = min(fire-int(math.Round(words[i-1].Last*100)), wordtimes.FarthestWord-1)
			}
		}
		letters := net.Letters(text, w.Text)
		before = begin(net, sound, &letters, fire, near, before+shortest, w.Fresh)
		w.Start = min(max(float64(before)/100, 0), pcm.Duration())
	}
	setEnds(words, speech)
}

// begin returns a word's start border, no earlier than from. fire is the frame
// of its first token, near is the distance from the previous word's last token.
func begin(net *wordtimes.BorderNet, sound *wordtimes.BorderSound, letters *wordtimes.Letters, fire, near, from int, fresh bool) int {
	var scores [wordtimes.BorderCount]float64
	lag := net.Lag[0]
	if fresh {
		lag, near = net.Lag[1], wordtimes.FarthestWord
	}
	top := math.Inf(-1)
	for k := range scores {
		b := fire + wordtimes.EarliestBorder + k
		if b < from && k < wordtimes.BorderCount-1 {
			scores[k] = math.Inf(-1)
			continue
		}
		scores[k] = net.Score(sound, b, letters) + float64(lag[k]) +
			float64(net.Near[min(max(wordtimes.EarliestBorder+k+near, -wordtimes.FarthestWord), wordtimes.FarthestWord)+wordtimes.FarthestWord])
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
			return fire + wordtimes.EarliestBorder + k
		}
	}
	return fire
}

const (
	// hold is how long (seconds) a word may last beyond its last token while
	// there is speech; lastHold is the same before a pause.
	hold     = 0.6
	lastHold = 0.3
)

// setEnds extends each word to the start of the next one or to the end of the
// stretch of speech that contains its last token.
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
			if k > 0 && a > w.Last { // tokens may fire shortly after the speech
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
