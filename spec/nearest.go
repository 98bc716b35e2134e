package spec

import (
	"fmt"
	"strings"
)

// longestName limits the compared part of a mistyped name, in characters.
const longestName = 100

// DidYouMean returns a question for the end of a message about a mistyped name,
// such as `; did you mean "optimize"?`. It suggests the candidate that contains
// the name or is contained in it (as one and a half edits), or has the smallest
// edit distance, ignoring case. It returns "" if more than a third of the name would have to change.
func DidYouMean(name string, candidates []string) string {
	want := []rune(strings.ToLower(name))
	want = want[:min(len(want), longestName)]
	best, least := "", 2*(len(want)/3+1) // half edits
	for _, c := range candidates {
		d := 2 * editDistance(want, []rune(c))
		if held := string(want); len(want) > 3 && (strings.Contains(held, c) || strings.Contains(c, held)) {
			d = min(d, 3)
		}
		if d < least {
			best, least = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance returns the Levenshtein distance, with a swap of neighbors
// counted as one edit (restricted Damerau).
func editDistance(a, b []rune) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
