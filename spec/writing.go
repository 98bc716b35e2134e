package spec

import (
	"unicode"
	"unicode/utf8"
)

var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// Unspaced reports whether r is a letter of a script written without spaces
// between words. Its text is timed, counted and joined by the character.
func Unspaced(r rune) bool { return unicode.In(r, unspaced...) }

// Separated returns next with the separator that joins it to before; both are
// sentences or parts of one. The separator is a space unless one of them is
// empty or both sides are Chinese or Japanese. Thai and similar scripts, which
// have no spaces between words, do have them between sentences.
func Separated(before, next string) string {
	if before == "" || next == "" {
		return next
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(next)
	if chineseOrJapanese(last) && chineseOrJapanese(first) {
		return next
	}
	return " " + next
}

// chineseOrJapanese reports whether r is of their scripts or punctuation (CJK
// Symbols and Punctuation, Halfwidth and Fullwidth Forms).
func chineseOrJapanese(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
}
