package align

import (
	"strings"
	"unicode"

	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/internal/engine/decode"
)

// word is a word of the text, prepared for alignment.
type word struct {
	text string // as written, with its punctuation
	key  string // the form compared with recognized words
	// letters are the letters that the tokens write; nil for a word that they
	// cannot spell or that has more than ctc.LongestWord letters.
	letters []rune
	// wild marks a number, sign or other script, whose sound is not known.
	wild bool
}

// Split divides a text into words as a transcript does: at spaces, and at each
// character of scripts without spaces. Punctuation stays with the word before.
func Split(text string) []string {
	var out []string
	for _, p := range decode.Words([]decode.Token{{Text: text}}) {
		out = append(out, strings.TrimSpace(p.Text))
	}
	return out
}

// prepare spells the words with a model's tokens.
func prepare(written []string, v *ctc.Vocabulary) []word {
	words := make([]word, len(written))
	for i, text := range written {
		w := word{text: text, key: keyOf(text)}
		letters, ok := v.Spell(ctc.Fold(text))
		if len(letters) > ctc.LongestWord {
			letters, ok = nil, false
		}
		w.letters = letters
		w.wild = !ok || strings.IndexFunc(w.key, needsReading) >= 0
		words[i] = w
	}
	return words
}

// needsReading reports whether a character is not pronounced as written:
// digits, and signs such as "%" and "€".
func needsReading(r rune) bool {
	return unicode.IsNumber(r) || unicode.In(r, unicode.Sc, unicode.Sm, unicode.So) || r == '%' || r == '&' || r == '@' || r == '#'
}

func (w word) nodes() int { return max(len(w.letters), 1) }

// keyOf returns the part of a word that is compared.
func keyOf(text string) string {
	return strings.TrimFunc(ctc.Fold(text), func(r rune) bool { return !ctc.IsSolid(r) && !needsReading(r) })
}
