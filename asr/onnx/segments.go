package onnx

import (
	"strings"
	"unicode"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/ctc"
	"github.com/otograph/otograph/internal/decode"
	"github.com/otograph/otograph/spec"
)

// snap is how far (seconds) the first token of a stretch of speech may lie from
// its border for a segment to begin there: a CTC network fires at one frame
// somewhere inside a token, the detector's border is nearer.
const snap = 0.5

// written is one token on its way into the text: what it writes and where in the
// file (seconds) it is spoken.
type written struct {
	token decode.Token
	end   float64
	fresh bool // whether it is the first of its window
}

// segments turns the windows' tokens into sentences with times of the file, and
// with their words if these are asked for and the family knows their times.
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
	snapToSpeech(words, speech)
	decode.Settle(words, speech)
	segments := decode.Sentences(words, withWords)
	if spoken != nil {
		setTimes(segments, spoken, speech)
	}
	for i := range segments {
		s := &segments[i]
		s.Text = e.vocab.dress(closeUp(s.Text))
		dressWords(s)
	}
	return segments
}

// spokenWords returns the words with the rows in which their tokens fire. Words'
// Start is that of their first token, End that of their last.
func spokenWords(words []decode.Piece, stream []written, shift float64) []ctc.Spoken {
	spoken := make([]ctc.Spoken, len(words))
	at := 0
	for i, w := range words {
		fresh := i == 0 || w.Start-words[i-1].End > freshPause
		for ; at < len(stream) && stream[at].token.Time <= w.Start; at++ {
			fresh = fresh || stream[at].fresh && stream[at].token.Time == w.Start
		}
		spoken[i] = ctc.Spoken{Text: w.Text, First: w.Start + shift/2, Last: max(w.End-shift/2, w.Start+shift/2), Fresh: fresh}
	}
	return spoken
}

// freshPause is the time (seconds) without a token after which a word is fresh to
// ctc.Refine.
const freshPause = 0.5

// dressWords sets the words of a segment to the letters of its text.
func dressWords(s *asr.Segment) {
	pieces := decode.Words([]decode.Token{{Text: s.Text}})
	if len(pieces) != len(s.Words) {
		return
	}
	for i, p := range pieces {
		s.Words[i].Text = strings.TrimSpace(p.Text)
	}
}

// endTimes sets the end of each word to that of the last token with a letter or
// digit that begins before the next word.
func endTimes(words []decode.Piece, stream []written) {
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

const (
	// hold is how long (seconds) a word may last beyond its last token while the voice
	// detector hears speech on: the token fires somewhere inside the word.
	hold = 0.6
	// tail is that for the last word of a sentence or of a stretch of speech:
	// there a pause may follow, and in noise or in a room the detector ends
	// late. Over the 192 single sentences of the demo sets the true end is
	// -0.10 to 0.51 s after the last token, so an end at most tail after it is
	// at most 0.35 s off, whatever the detector reports.
	tail = 0.25
)

// snapToSpeech moves the start of the first word of every stretch of speech to the
// stretch's border if that is near. A word lasts until the next one begins or the
// stretch ends, at most hold longer than its tokens, tail where a sentence or the
// stretch ends: what lies between two tokens in a stretch is speech, not a pause.
//
// A token may fire a little outside of the stretch that it belongs to: words go
// to the nearest one.
func snapToSpeech(words []decode.Piece, speech []audio.Span) {
	for i, k := 0, 0; i < len(words) && len(speech) > 0; {
		belongs := func(w decode.Piece) bool {
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

// closeUp takes out spaces between two characters of a script without spaces: they
// are the joins of windows or pieces, not part of the writing.
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

// setTimes sets the times of the words of segments to those that ctc.Refine found; both
// have the same number of words. The segments keep their times.
func setTimes(segments []asr.Segment, spoken []ctc.Spoken, speech []audio.Span) {
	var words []*asr.Word
	for i := range segments {
		for k := range segments[i].Words {
			w := &segments[i].Words[k]
			w.Start, w.End = spoken[len(words)].Start, spoken[len(words)].End
			words = append(words, w)
		}
	}
	decode.SettleWords(words, speech)
}
