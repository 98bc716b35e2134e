package bench

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/spec"
)

// Units splits a text into units for scoring: words, or characters for
// languages written without spaces (Chinese, Japanese, Thai …). language is an
// ISO 639-1 code; if it is empty, the text is scored by words.
//
// The same rules apply to reference and hypothesis:
//   - Unicode NFKC (full-width forms, ligatures)
//   - lower case (with the rules of Turkish and Azerbaijani for these languages)
//   - no format characters such as soft hyphens
//   - apostrophes and their typed substitutes stay inside words
//   - hyphens and dashes separate words
//   - all other punctuation and symbols are removed
//   - runs of Latin letters or digits in a text of characters stay one unit
func Units(language, text string) []string {
	characters := language != "" && !spec.Spaced(language)
	var units []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			units = append(units, word.String())
		}
		word.Reset()
	}
	for _, r := range lower(language, norm.NFKC.String(typed(text))) {
		switch {
		case r == '\'':
			word.WriteByte('\'')
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r):
			if characters && !unicode.Is(unicode.Latin, r) && !unicode.IsDigit(r) {
				flush()
				units = append(units, string(r))
				continue
			}
			word.WriteRune(r)
		default:
			flush()
		}
	}
	flush()
	return units
}

// apostrophes lists the characters that texts use as apostrophes.
const apostrophes = "'’ʼ‘‛`´′＇ʹʻ"

// typed returns a text without format characters, every apostrophe between two
// letters or digits as "'", and every other one as a space.
func typed(text string) string {
	runes := slices.DeleteFunc([]rune(text), func(r rune) bool { return unicode.Is(unicode.Cf, r) })
	for i, r := range runes {
		if !strings.ContainsRune(apostrophes, r) {
			continue
		}
		runes[i] = ' '
		if i > 0 && i+1 < len(runes) && unicode.In(runes[i-1], unicode.L, unicode.M, unicode.N) && unicode.In(runes[i+1], unicode.L, unicode.N) {
			runes[i] = '\''
		}
	}
	return string(runes)
}

func lower(language, text string) string {
	if language == "tr" || language == "az" {
		return strings.ToLowerSpecial(unicode.TurkishCase, text)
	}
	return strings.ToLower(text)
}

// WordErrors counts a hypothesis's Substitutions, Deletions and Insertions, and the
// units of the Reference; Rate returns their sum over Reference.
type WordErrors = scores.Errors

// CompareWords aligns a hypothesis with its reference with the smallest number
// of errors (Levenshtein) and counts them; of several such alignments it
// chooses the same as jiwer 4.0.
func CompareWords(reference, hypothesis []string) WordErrors {
	return scores.CompareWords(reference, hypothesis)
}
