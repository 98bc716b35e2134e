package ctc

import (
	"strings"
	"unicode"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// snap is how far (seconds) the first or last token of a stretch of speech may
// lie from its border for a segment to begin or end at the border: a CTC network
// fires at one frame somewhere inside a token, the detector's border is nearer.
const snap = 0.5

// written is one token on its way into the text: what it writes and where in the
// file (seconds) it is spoken.
type written struct {
	token asr.Token
	end   float64
}

// segments turns the windows' tokens into sentences with times of the file.
func (e *Engine) segments(windows []asr.Window, hyps []hypothesis, speech []audio.Span) []asr.Segment {
	var stream []written
	for i, h := range hyps {
		w := windows[i]
		first := true
		for _, m := range e.vocab.write(h.emissions) {
			text := m.text
			if first && e.vocab.spaced && !strings.HasPrefix(text, " ") {
				text = " " + text
			}
			first = false
			t := written{token: asr.Token{Text: text, LogProb: m.logProb, Probability: exp(m.logProb), Time: w.Time(m.start)}, end: w.Time(m.end)}
			if h.unbounded {
				t.token.Time, t.end = w.Time(0), w.Time(float64(w.Len())/audio.SampleRate)
			}
			stream = append(stream, t)
		}
	}
	tokens := make([]asr.Token, len(stream))
	for i, s := range stream {
		tokens[i] = s.token
	}
	words := asr.Words(tokens)
	endTimes(words, stream)
	snapToSpeech(words, speech)
	asr.Settle(words, speech)
	segments := asr.Sentences(words, false)
	for i := range segments {
		segments[i].Text = e.vocab.dress(closeUp(segments[i].Text))
	}
	return segments
}

// endTimes gives each word the end of the last token with a letter or digit that
// begins before the next word does.
func endTimes(words []asr.Piece, stream []written) {
	at := 0
	for i := range words {
		words[i].End = words[i].Start
		for ; at < len(stream); at++ {
			s := stream[at]
			if i+1 < len(words) && s.token.Time >= words[i+1].Start && s.token.Time > words[i].Start {
				break
			}
			if strings.IndexFunc(s.token.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0 {
				words[i].End = max(words[i].End, s.end)
			}
			if i+1 < len(words) && s.token.Time >= words[i+1].Start {
				break
			}
		}
	}
}

// hold is how long (seconds) a word may last beyond its last token while the voice
// detector hears speech on: the token fires somewhere inside the word.
const hold = 0.6

// snapToSpeech moves the start of the first word of every stretch of speech, and
// the end of the last, to the stretch's border if that is near. Inside a stretch a
// word lasts until the next one begins, at most hold longer than its tokens: what
// lies between two tokens there is speech, not a pause.
//
// A token may fire a little outside of the stretch that it belongs to: words go
// to the nearest one.
func snapToSpeech(words []asr.Piece, speech []audio.Span) {
	for i, k := 0, 0; i < len(words) && len(speech) > 0; {
		belongs := func(w asr.Piece) bool {
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
		for n := i; n < j-1; n++ {
			words[n].End = max(words[n].End, min(words[n+1].Start, words[n].End+hold))
		}
		if words[i].Start-a < snap {
			words[i].Start = a
		}
		if w := &words[j-1]; w.End < b && b-w.End < snap {
			w.End = b
		}
		i = j
	}
}

// closeUp takes out spaces between two characters of a script without spaces: they
// are the joins of windows or pieces, not part of the writing.
func closeUp(s string) string {
	runes := []rune(s)
	out := runes[:0:0]
	for i, r := range runes {
		if r == ' ' && len(out) > 0 && i+1 < len(runes) && unspacedRune(out[len(out)-1]) && unspacedRune(runes[i+1]) {
			continue
		}
		out = append(out, r)
	}
	return string(out)
}

func unspacedRune(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
