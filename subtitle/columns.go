package subtitle

import (
	"unicode"

	"golang.org/x/text/width"
)

// columns returns a text's width on a terminal or in a subtitle's grid: two for
// each wide character (Chinese, Japanese, Korean), none for combining marks.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < 0x300:
			n++
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether a character takes two columns (East Asian Width W, F).
func wide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	kind := width.LookupRune(r).Kind()
	return kind == width.EastAsianWide || kind == width.EastAsianFullwidth
}
