package whisper

import (
	"unicode"

	"github.com/otograph/otograph/internal/decode"
)

// A prompt steers the style of a text; it must not cost any of it. Some models
// answer a prompt that they did not expect with nothing, with a loop, or with a
// few words. A window whose text looks so is decoded again without the prompt, and
// the better text is taken.
const (
	// doubtLogProb is the mean log probability below which a prompted text is held
	// against one without the prompt.
	doubtLogProb = -0.25
	// fewerLetters is how much of the plain text a prompted one must have.
	fewerLetters = 0.8
)

// prompt puts the initial prompt and the text before a window together, as many of their
// last tokens as the model has room for.
func (e *Engine) prompt(t *task, previous string) []int32 {
	room := int(e.header.TextContext)/2 - 1
	initial := t.initial[max(0, len(t.initial)-room):]
	if previous == "" {
		return initial
	}
	before := e.now().Tokenize(previous)
	before = before[max(0, len(before)-(room-len(initial))):]
	return append(append(make([]int32, 0, len(initial)+len(before)), initial...), before...)
}

// doubtful reports whether a prompt may have spoiled a window's text: there is
// none, it failed, it leaves speech without words, or it is unlikely.
func doubtful(v vocabulary, w decode.Window, a attempt) bool {
	if len(a.tokens) == 0 || a.failed() || a.avgLogProb < doubtLogProb {
		return true
	}
	words, skips, covered, _ := readText(v, w, a)
	after := w.Rest(covered + restSlack)
	return len(skips) > 0 || after.SpeechSeconds() >= restSeconds || !decode.Brisk(words, w.SpeechSeconds())
}

// spoiled reports whether a window's text with a prompt is worse than that without:
// none, failed, much shorter, or less likely.
func spoiled(prompted, plain attempt) bool {
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
