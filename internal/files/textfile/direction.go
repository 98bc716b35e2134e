package textfile

import "golang.org/x/text/unicode/bidi"

// RightToLeft reports whether the first strong character of a text belongs to a
// script that is written from right to left (Unicode Standard Annex 9, rule
// P2).
func RightToLeft(text string) bool {
	for _, r := range text {
		p, _ := bidi.LookupRune(r)
		if class := p.Class(); class == bidi.R || class == bidi.AL || class == bidi.L {
			return class != bidi.L
		}
	}
	return false
}

// Isolate returns a text that keeps the direction of its script after a name
// or a time: one from right to left is put between U+2067 and U+2069.
func Isolate(text string) string {
	if RightToLeft(text) {
		return "\u2067" + text + "\u2069"
	}
	return text
}
