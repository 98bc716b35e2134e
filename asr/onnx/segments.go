package onnx

import (
	"slices"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/spec"
)

// snap is the greatest distance (seconds) between a stretch of speech's first
// token and its border at which a segment begins at the border. A token is
// somewhere inside the sound; the detector's border is more accurate.
const snap = 0.5

// written is a token of the text: its bytes and its time in the file (s).
type written struct {
	token decode.Token
	end   float64
	fresh bool // whether it is the first of its window
}

// segments turns the windows' tokens into sentences with times of the file, and
// with words if they are requested and the family has their times.
func (e *Engine) segments(pcm *audio.PCM, windows []decode.Window, hyps []hypothesis, speech []audio.Span, withWords bool) []asr.Segment {
	var stream []written
	for i, h := range hyps {
		w := windows[i]
		first := true
		for _, m := range e.vocab.write(h.emissions) {
			text := m.text
			if first && e.vocab.spaced && !strings.HasPrefix(text, " ") {
				text = " " + text
			}
			t := written{token: decode.Token{Text: text, LogProb: m.logProb, Probability: exp(m.logProb), NoSpeech: m.blank, Time: w.Time(m.start), Seek: w.Time(0), ID: int32(m.id)}, end: w.Time(m.end), fresh: first}
			first = false
			if h.unbounded {
				withWords = false
				t.token.Time, t.end = w.Time(0), w.Time(float64(w.Len())/audio.SampleRate)
			}
			stream = append(stream, t)
		}
	}
	tokens := make([]decode.Token, len(stream))
	for i, s := range stream {
		tokens[i] = s.token
	}
	words := decode.Words(tokens)
	endTimes(words, stream)
	var spoken []ctc.Spoken
	if h := e.net.ctc(); h != nil && withWords {
		spoken = spokenWords(words, stream, h.shift)
		ctc.Refine(pcm, spoken, speech)
	}
	if !slices.ContainsFunc(hyps, func(h hypothesis) bool { return h.timed }) {
		snapToSpeech(words, speech)
	}
	decode.Settle(words, speech)
	segments := decode.Sentences(words, withWords)
	if spoken != nil {
		var timed []*asr.Word // the segments' own times stay
		for i := range segments {
			for k := range segments[i].Words {
				w := &segments[i].Words[k]
				w.Start, w.End = spoken[len(timed)].Start, spoken[len(timed)].End
				timed = append(timed, w)
			}
		}
		decode.SettleWords(timed, speech)
	}
	for i := range segments {
		s := &segments[i]
		s.Text = e.vocab.capitalize(closeUp(s.Text))
		if pieces := decode.Words([]decode.Token{{Text: s.Text}}); len(pieces) == len(s.Words) {
			for k, p := range pieces { // copies the spelling
				s.Words[k].Text = strings.TrimSpace(p.Text)
			}
		}
	}
	return segments
}

// spokenWords returns the words with the rows in which their tokens fire. A
// word's Start is its first token's, its End its last token's.
func spokenWords(words []decode.Word, stream []written, shift float64) []ctc.Spoken {
	spoken := make([]ctc.Spoken, len(words))
	at := 0
	for i, w := range words {
		fresh := i == 0 || w.Start-words[i-1].End > ctc.Pause
		for ; at < len(stream) && stream[at].token.Time <= w.Start; at++ {
			fresh = fresh || stream[at].fresh && stream[at].token.Time == w.Start
		}
		spoken[i] = ctc.Spoken{Text: w.Text, First: w.Start + shift/2, Last: max(w.End-shift/2, w.Start+shift/2), Fresh: fresh}
	}
	return spoken
}

// endTimes sets each word's end to the end of the last token with a letter or
// digit that begins before the next word.
func endTimes(words []decode.Word, stream []written) {
	at := 0
	for i := range words {
		words[i].End = words[i].Start
		for ; at < len(stream); at++ {
			s := stream[at]
			if i+1 < len(words) && s.token.Time >= words[i+1].Start && s.token.Time > words[i].Start {
				break
			}
			if strings.IndexFunc(s.token.Text, solid) >= 0 {
				words[i].End = max(words[i].End, s.end)
			}
			if i+1 < len(words) && s.token.Time >= words[i+1].Start {
				break
			}
		}
	}
}

const (
	// hold is how long (seconds) a word may last beyond its last token while
	// there is speech: the token fires somewhere inside the word.
	hold = 0.6
	// tail replaces hold for the last word of a sentence or of a stretch: a
	// pause may follow, and in noise or reverberation the detector ends late.
	// Over the 192 single sentences of the demo sets, the true end is -0.10 to
	// 0.51 s after the last token: the error is at most 0.35 s.
	tail = 0.25
)

// snapToSpeech moves the start of the first word of each stretch of speech to
// the stretch's border if that is near. A word lasts until the next one begins
// or the stretch ends, but at most hold beyond its tokens, or tail at the end
// of a sentence or stretch. Gaps between a stretch's tokens are speech.
//
// A token may fire outside of its stretch: words belong to the nearest.
func snapToSpeech(words []decode.Word, speech []audio.Span) {
	for i, k := 0, 0; i < len(words) && len(speech) > 0; {
		belongs := func(w decode.Word) bool {
			if k+1 == len(speech) {
				return true
			}
			_, end := speech[k].Seconds()
			next, _ := speech[k+1].Seconds()
			return w.Start < (end+next)/2
		}
		if !belongs(words[i]) {
			k++
			continue
		}
		j := i
		for j < len(words) && belongs(words[j]) {
			j++
		}
		a, b := speech[k].Seconds()
		for n := i; n < j; n++ {
			until, longest := b, tail
			if n+1 < j {
				until = words[n+1].Start
				if !decode.EndsSentence(words[n].Text, words[n+1].Text) {
					longest = hold
				}
			}
			words[n].End = max(words[n].End, min(until, words[n].End+longest))
		}
		if words[i].Start-a < snap {
			words[i].Start = a
		}
		i = j
	}
}

// closeUp removes the spaces that joining windows or pieces left between two
// characters of a script without spaces.
func closeUp(s string) string {
	runes := []rune(s)
	out := runes[:0:0]
	for i, r := range runes {
		if r == ' ' && len(out) > 0 && i+1 < len(runes) && spec.Unspaced(out[len(out)-1]) && spec.Unspaced(runes[i+1]) {
			continue
		}
		out = append(out, r)
	}
	return string(out)
}
