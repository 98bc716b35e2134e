package align

import (
	"strings"
	"unicode"

	"github.com/otograph/otograph/asr"
)

// word is a word of the text on its way onto the sound.
type word struct {
	text string // as written, with its punctuation
	key  string // by which it is compared with what was recognized
	// letters are those that the model's tokens write; nil for a word that they
	// cannot spell.
	letters []rune
	// wild says that something else than the letters may be spoken: a number, a
	// sign, another script.
	wild bool
}

// Split divides a text into words, as a transcript divides its own: at spaces,
// and at every character of scripts without spaces. Punctuation stays with the
// word before it.
func Split(text string) []string {
	var out []string
	for _, p := range asr.Words([]asr.Token{{Text: text}}) {
		out = append(out, strings.TrimSpace(p.Text))
	}
	return out
}

// prepare spells the words with a model's tokens.
func prepare(texts []string, v *Vocabulary) []word {
	words := make([]word, len(texts))
	for i, text := range texts {
		w := word{text: text, key: keyOf(text)}
		letters, ok := v.spell(fold(text))
		w.letters = letters
		w.wild = !ok || strings.IndexFunc(w.key, needsReading) >= 0
		words[i] = w
	}
	return words
}

// needsReading reports whether a character is spoken otherwise than by its
// sound: digits, and signs such as "%" and "€".
func needsReading(r rune) bool {
	return unicode.IsNumber(r) || unicode.In(r, unicode.Sc, unicode.Sm, unicode.So) || r == '%' || r == '&' || r == '@' || r == '#'
}

// keyOf leaves of a word what is compared.
func keyOf(text string) string {
	return strings.TrimFunc(fold(text), func(r rune) bool { return !isSolid(r) && !needsReading(r) })
}
