package textfile

import (
	"strings"

	"golang.org/x/text/unicode/bidi"
)

// RightToLeft reports whether most letters of a text belong to scripts that are
// written from right to left.
func RightToLeft(text string) bool {
	balance := 0
	for _, r := range text {
		p, _ := bidi.LookupRune(r)
		if class := p.Class(); class == bidi.R || class == bidi.AL {
			balance++
		} else if class == bidi.L {
			balance--
		}
	}
	return balance > 0
}

// Isolate returns a text that keeps the direction of its script after a name or
// a time: a right-to-left text is put between U+2067 and U+2069.
func Isolate(text string) string {
	if RightToLeft(text) {
		return "\u2067" + text + "\u2069"
	}
	return text
}

// IsolateLines isolates lines of a right-to-left text: lines after a name, and
// lines that begin with a word of another direction, because players give a
// line the direction of its first strong character.
func IsolateLines(lines []string, named bool) {
	text := strings.Join(lines, " ")
	for i, line := range lines {
		if first, _, _ := strings.Cut(line, " "); RightToLeft(text) && (named || !RightToLeft(first)) {
			lines[i] = "\u2067" + line + "\u2069"
		}
	}
}
