package live

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/texts"
	"github.com/otograph/otograph/spec"
)

// word is a word's place in a text; a character in scripts without spaces.
type word struct{ start, end int }

// letter reports whether a rune belongs to a word, as the apostrophe of "don't".
func letter(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '\'' || r == '’'
}

func wordsOf(text string) (out []word) {
	open := false
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		switch {
		case !letter(r):
			open = false
		case open && !spec.Unspaced(r):
			out[len(out)-1].end = next
		default:
			out = append(out, word{i, next})
			open = !spec.Unspaced(r)
		}
	}
	return out
}

// agreed returns the words with which both texts begin, exactly as written,
// without the punctuation after them, which depends on the next words.
func agreed(a, b string) string {
	of, with := wordsOf(a), wordsOf(b)
	n := 0
	for n < min(len(of), len(with)) && of[n] == with[n] && a[:of[n].end] == b[:with[n].end] {
		n++
	}
	if n == 0 {
		return ""
	}
	return a[:of[n-1].end]
}

// agreed returns the words with which the new text, recognized up to the sample
// end, and the last recognition's text begin; if careful, the text before that
// must too. Two recognitions of nearly the same sound make the same mistake in
// the last word of a text, so there three must agree as well. A text that only
// continues needs no agreement, but its last word may become longer.
func (u *utterance) agreed(text string, end int, careful bool) string {
	if u.grows {
		return butLast(text)
	}
	two := agreed(u.last, text)
	three := agreed(u.earlier, two)
	if careful {
		return three
	}
	words := wordsOf(two)
	if n := len(words); n > 0 && n == len(wordsOf(text)) && three != two && end-u.end < sameSound {
		return butLast(two)
	}
	return two
}

// butLast returns a text without its last word.
func butLast(text string) string {
	words := wordsOf(text)
	if len(words) < 2 {
		return ""
	}
	return text[:words[len(words)-2].end]
}

// loops reports whether a text repeats words more often than people do.
func loops(text string) bool {
	var words []decode.Word
	for _, w := range wordsOf(text) {
		words = append(words, decode.Word{Word: asr.Word{Text: text[w.start:w.end]}})
	}
	_, found := decode.Unloop(words)
	return found
}

// extends reports whether a text begins with whole words that are another text.
func extends(text, before string) bool {
	if !strings.HasPrefix(text, before) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(text[len(before):])
	return before == "" || len(text) == len(before) || !letter(last) || !letter(next) || spec.Unspaced(next)
}

// grown returns the next text of an utterance whose words so far cannot be taken
// back: the next text itself if it extends them; otherwise the words so far, and
// the next text after the words that are most like them.
func grown(before, next string) (text string, kept bool) {
	if extends(next, before) {
		return next, false
	}
	words := wordsOf(next)
	if len(words) == 0 {
		return before, true
	}
	of, with := []rune(strings.ToLower(before)), []rune(strings.ToLower(next))
	row := texts.EditDistances(of, with) // distances of the words so far to the first runes of the next text
	best, least := 0, -1
	for _, w := range words {
		at := min(utf8.RuneCountInString(next[:w.end]), len(with))
		if least < 0 || row[at] < least {
			best, least = w.end, row[at]
		}
	}
	rest := next[best:]
	if !extends(before+rest, before) { // after a script without spaces
		rest = spec.Separated(before, rest)
	}
	return before + rest, true
}
