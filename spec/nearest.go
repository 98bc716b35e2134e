package spec

import (
	"math"
	"strings"
)

// longestName bounds the part of a mistyped name that is compared, in characters.
const longestName = 100

// Nearest returns the candidate with the smallest edit distance to s, ignoring
// the case of s: what a mistyped name was probably meant to be. It returns ""
// when there is no candidate.
func Nearest(s string, candidates []string) string {
	want := []rune(strings.ToLower(s))
	want = want[:min(len(want), longestName)]
	best, least := "", math.MaxInt
	for _, c := range candidates {
		if d := editDistance(want, []rune(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// editDistance returns Levenshtein's distance, with a swap of neighbors counted
// as one edit (restricted Damerau).
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
