package scores

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inWord reports whether a character belongs to a word in Python's regular
// expressions. In Go's, only ASCII does.
func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// borders reports whether a word begins or ends at an index of a text.
func borders(s string, at int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:at])
	after, m := utf8.DecodeRuneInString(s[at:])
	return (n > 0 && inWord(before)) != (m > 0 && inWord(after))
}

// replaceWords replaces the matches of a pattern that end at a word border and,
// with left, begin at one. replace gets the groups of a match.
func replaceWords(s string, pattern *regexp.Regexp, left bool, replace func(groups []string) string) string {
	return replaceMatches(s, pattern.FindStringSubmatchIndex, left, func(s string, m []int) string {
		var groups []string
		for g := 0; g < len(m); g += 2 {
			text := ""
			if m[g] >= 0 {
				text = s[m[g]:m[g+1]]
			}
			groups = append(groups, text)
		}
		return replace(groups)
	})
}

// replaceWord replaces a literal that ends at a word border and, with left,
// begins at one.
func replaceWord(s, literal, by string, left bool) string {
	find := func(s string) []int {
		if i := strings.Index(s, literal); i >= 0 {
			return []int{i, i + len(literal)}
		}
		return nil
	}
	return replaceMatches(s, find, left, func(string, []int) string { return by })
}

// replaceMatches replaces the matches that find returns, in the form of a
// regular expression's, if they end at a word border and, with left, begin at
// one.
func replaceMatches(s string, find func(s string) []int, left bool, replace func(s string, match []int) string) string {
	var b strings.Builder
	done := 0
	for at := 0; at <= len(s); {
		m := find(s[at:])
		if m == nil {
			break
		}
		start, end := at+m[0], at+m[1]
		if !borders(s, end) || left && !borders(s, start) {
			_, n := utf8.DecodeRuneInString(s[start:])
			at = start + max(n, 1)
			continue
		}
		b.WriteString(s[done:start])
		b.WriteString(replace(s[at:], m))
		done, at = end, end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}
