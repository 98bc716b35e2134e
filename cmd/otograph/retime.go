package main

import (
	"math"
	"strings"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

// retime sets the times of a script's cues from the times of their words. A cue
// whose words have no times is shifted like the cue before it (or after it, at
// the beginning), between its neighbors; lost counts such cues.
func retime(script *subtitle.Script, words []align.Word, cueOf []int) (lost int) {
	cues := script.Cues
	found := make([]bool, len(cues))
	shift := make([]float64, len(cues))
	for i, w := range words {
		k := cueOf[i]
		switch c := &cues[k]; {
		case w.Missing:
		case !found[k]:
			found[k], shift[k] = true, w.Start-c.Start
			c.Start, c.End = w.Start, w.End
		default:
			c.End = max(c.End, w.End)
		}
	}
	for i := 0; i < len(cues); {
		if found[i] {
			i++
			continue
		}
		next := i
		for next < len(cues) && !found[next] {
			next++
		}
		low, high, by := 0.0, math.Inf(1), 0.0
		if next < len(cues) {
			high, by = cues[next].Start, shift[next]
		}
		if i > 0 {
			low, by = cues[i-1].End, shift[i-1]
		}
		lost += next - i
		for ; i < next; i++ {
			c := &cues[i]
			length := min(c.End-c.Start, max(high-low, 0)/float64(next-i))
			c.Start = min(max(c.Start+by, low), high-length*float64(next-i))
			c.End = c.Start + length
			low = c.End
		}
	}
	return lost
}

// sentencePause is the silence, in seconds, between two words that ends a cue.
const sentencePause = 0.8

// alignedCues returns cues for the words with times: for subtitles one per
// original cue (cueOf), for a text one per sentence or per part between pauses.
func alignedCues(words []align.Word, cueOf []int) []subtitle.Cue {
	var cues []subtitle.Cue
	last := -1 // the previous word with a time
	for i, w := range words {
		if w.Missing {
			continue
		}
		fresh := last < 0
		switch {
		case fresh:
		case cueOf != nil:
			fresh = cueOf[i] != cueOf[last]
		default:
			fresh = decode.EndsSentence(words[last].Text, w.Text) || w.Start-words[last].End >= sentencePause
		}
		last = i
		if fresh {
			cues = append(cues, subtitle.Cue{Start: w.Start})
		}
		c := &cues[len(cues)-1]
		c.End = w.End
		c.Words = append(c.Words, spec.Word{Word: w.Text, Start: w.Start, End: w.End, Probability: w.Probability})
	}
	for i := range cues {
		cues[i].Text = written(cues[i].Words)
	}
	return cues
}

// written joins words with spaces, except in scripts without spaces.
func written(words []spec.Word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 && !(unspaced(words[i-1].Word) && unspaced(w.Word)) {
			b.WriteByte(' ')
		}
		b.WriteString(w.Word)
	}
	return b.String()
}

// unspaced reports whether a word is of a script written without spaces.
func unspaced(word string) bool { return strings.IndexFunc(word, spec.Unspaced) >= 0 }
