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

// prompted reports whether the windows of a task get a prompt.
func (t *task) prompted(previous string) bool { return len(t.initial) > 0 || previous != "" }

// plain returns the task without its initial prompt.
func (t *task) plain() *task {
	p := *t
	p.initial = nil
	return &p
}

// unprompted decodes a window without its prompt if the text with it leaves doubt,
// and keeps the better of the two.
func (e *Engine) unprompted(s *state, j *job, t *task, threads int, w decode.Window, samples []float32, r *result) error {
	if !e.doubtful(w, r.attempt) {
		return nil
	}
	r.stats.Unprompted++
	plain, noSpeech, err := e.search(s, j, t.plain(), threads, samples, "", &r.stats)
	if err == nil && spoiled(r.attempt, plain) {
		r.attempt, r.noSpeech = plain, noSpeech
	}
	return err
}

// doubtful reports whether a prompt may have spoiled a window's text: there is
// none, it failed, it leaves speech without words, or it is unlikely.
func (e *Engine) doubtful(w decode.Window, a attempt) bool {
	if len(a.tokens) == 0 || a.failed() || a.avgLogProb < doubtLogProb {
		return true
	}
	words, skips, covered, _ := e.read(w, a)
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
