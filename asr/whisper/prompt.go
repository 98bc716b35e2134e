package whisper

import (
	"unicode"

	"github.com/otograph/otograph/internal/engine/decode"
)

// A prompt steers the style of a text; it must not lose any of it. Some models
// answer an unexpected one with nothing, a loop, or a few words. Such a window
// is decoded again without it, and the better text is kept.
const (
	// doubtLogProb is the mean log probability below which a prompted text is
	// compared with an unprompted one.
	doubtLogProb = -0.25
	// fewerLetters is a prompted text's least share of unprompted letters.
	fewerLetters = 0.8
)

// prompt returns the initial prompt's last tokens, as many as have room.
func (e *Engine) prompt(t *task) []int32 {
	room := int(e.header.TextContext)/2 - 1
	return t.initial[max(0, len(t.initial)-room):]
}

// doubtful reports whether a prompt may have harmed a window's text: it is
// empty, failed or unlikely, or leaves speech without words.
func doubtful(v vocabulary, w decode.Window, a attempt) bool {
	if len(a.tokens) == 0 || a.failed() || a.avgLogProb < doubtLogProb {
		return true
	}
	words, skips, covered, _ := readText(v, w, a)
	after := w.Rest(covered + restSlack)
	return len(skips) > 0 || after.SpeechSeconds() >= restSeconds || !decode.Brisk(words, w.SpeechSeconds())
}

// promptHarms reports whether a window's text is worse with the prompt than
// without: empty, failed, much shorter, or less likely.
func promptHarms(prompted, plain attempt) bool {
	switch {
	case len(plain.tokens) == 0 || plain.failed():
		return len(prompted.tokens) == 0 && len(plain.tokens) > 0
	case len(prompted.tokens) == 0 || prompted.failed():
		return true
	case countLetters(prompted.text) < fewerLetters*countLetters(plain.text):
		return true
	}
	return plain.avgLogProb > prompted.avgLogProb
}

// countLetters counts the letters and digits of a text.
func countLetters(text string) float64 {
	var n float64
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}
