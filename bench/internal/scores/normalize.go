package scores

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/runes"
	"golang.org/x/text/unicode/norm"
)

// Normalizer converts references and hypotheses to a common form before they
// are compared, by the rules of a program that publishes word error rates. It
// has a version, because the rules determine the error rate.
type Normalizer struct {
	Name    string
	Version string // of the rules
	english func(string) string
	others  func(string) string // for other languages
}

// normalizers holds all normalizers of FindNormalizer. Whisper's rules are from
// the Python package whisper-normalizer, which are OpenAI's with four more
// contractions. The rules of the Open ASR Leaderboard are as of 2026-08; its
// table of spellings of names is omitted.
var normalizers = []Normalizer{
	{"none", "1", func(s string) string { return s }, func(s string) string { return s }},
	{"basic", "whisper-normalizer 0.1.15", basic, basic},
	{"whisper", "whisper-normalizer 0.1.15", whisper.text, basic},
	{"openasr-2026", "Open ASR Leaderboard 2026-08, without its table of names", openASR2026.text, basic},
	{"letters", "2", foldLetters, foldLetters},
}

// FindNormalizer returns a normalizer by its name.
func FindNormalizer(name string) (Normalizer, error) {
	var names []string
	for _, n := range normalizers {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return Normalizer{}, fmt.Errorf("unknown normalizer %q: expected one of %s", name, strings.Join(names, ", "))
}

// String returns the name with its version.
func (n Normalizer) String() string { return n.Name + " (" + n.Version + ")" }

// Text normalizes a text. code is its ISO 639-1 language; English and texts of
// unknown language have separate rules.
func (n Normalizer) Text(code, text string) string {
	if code == "en" || code == "" {
		return n.english(text)
	}
	return n.others(text)
}

// space is the class of white space characters in Python's regular expressions.
const space = `[\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`

var (
	spaces   = regexp.MustCompile(space + `+`)
	brackets = regexp.MustCompile(`[<\[][^>\]]*[>\]]`)
	parens   = regexp.MustCompile(`\([^)]+?\)`)
)

// lower returns a lower-cased text, with the rules of Greek and dotted I.
func lower(s string) string {
	if strings.ContainsAny(s, "Σİ") {
		return cases.Lower(language.Und).String(s)
	}
	return strings.ToLower(s)
}

// fields splits a text at white space like Python.
func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f })
}

func withoutRemarks(s string) string {
	return parens.ReplaceAllLiteralString(brackets.ReplaceAllLiteralString(s, ""), "")
}

// basic removes remarks and replaces marks, symbols and punctuation by spaces.
func basic(s string) string {
	s = withoutRemarks(lower(s))
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.M, unicode.S, unicode.P) {
			return ' '
		}
		return r
	}, norm.NFKC.String(s))
	return spaces.ReplaceAllLiteralString(lower(s), " ")
}

// foldLetters returns a text in lower case without punctuation in which spelling
// that carries no sound makes no difference: the vowel signs of Arabic and Hebrew,
// tatweel, hamza and the forms of yeh, kaf and heh, digits, the half-space of
// Persian or a space in its place, and the spaces of Korean, whose syllables
// become words.
func foldLetters(s string) string {
	var b strings.Builder
	bare := runes.Remove(runes.Predicate(func(r rune) bool { return r >= 0x591 && r <= 0x670 && unicode.Is(unicode.Mn, r) }))
	for _, r := range variants.Replace(norm.NFKC.String(bare.String(norm.NFKD.String(lower(s))))) {
		switch {
		case r == 'ـ' || unicode.Is(unicode.Cf, r):
		case r >= 0x660 && r <= 0x669 || r >= 0x6f0 && r <= 0x6f9:
			b.WriteByte('0' + byte(r&15))
		case unicode.Is(unicode.Hangul, r):
			b.WriteString(" " + string(r) + " ")
		case r == '\'' || unicode.In(r, unicode.L, unicode.M, unicode.N):
			b.WriteRune(r)
		default:
			b.WriteByte(' ')
		}
	}
	return suffixed.ReplaceAllString(prefixed.ReplaceAllString(b.String(), "$1$2"), "$1$2")
}

var (
	// variants writes letters of Arabic, Persian and Urdu alike.
	variants = strings.NewReplacer("ي", "ی", "ى", "ی", "ك", "ک", "ة", "ه", "ہ", "ه", "ھ", "ه")
	// prefixed and suffixed match Persian prefixes before a space and suffixes
	// after a space.
	prefixed = regexp.MustCompile(`(^| )(ن?می) +`)
	suffixed = regexp.MustCompile(` +(هایی?|ها|تر|ترین)( |$)`)
)

// letters maps letters that Unicode does not decompose into letter and mark.
var letters = map[rune]string{
	'œ': "oe", 'Œ': "OE", 'ø': "o", 'Ø': "O", 'æ': "ae", 'Æ': "AE", 'ß': "ss", 'ẞ': "SS",
	'đ': "d", 'Đ': "D", 'ð': "d", 'Ð': "D", 'þ': "th", 'Þ': "th", 'ł': "l", 'Ł': "L",
}

// plain drops diacritics and replaces symbols and punctuation with spaces,
// except the characters in keep.
func plain(s, keep string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		switch other, ok := letters[r]; {
		case strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case ok:
			b.WriteString(other)
		case unicode.Is(unicode.Mn, r):
		case unicode.In(r, unicode.M, unicode.S, unicode.P):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
