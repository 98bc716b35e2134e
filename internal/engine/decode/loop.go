package decode

import (
	"slices"
	"strings"
	"unicode"
)

// A loop is an n-gram of up to loopPeriod words that is repeated at least
// loopTimes times in a row and has at least loopWords words in all. People do
// repeat themselves: "no no no no".
const (
	loopPeriod = 24
	loopTimes  = 4
	loopWords  = 12
	loopTokens = 10 // instead of loopWords, in a text's tokens
	// LoopReach is the elements that decide whether a list begins a loop.
	LoopReach = loopPeriod * loopTimes
)

// Unloop keeps only the first of every n-gram that is repeated at least 4 times
// with 12 words in all, ignoring case and punctuation, and reports a removal.
func Unloop(words []Word) ([]Word, bool) {
	keys := make([]string, len(words))
	for i, w := range words {
		keys[i] = strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, w.Text)
	}
	var kept []Word
	found := false
	for i := 0; i < len(words); {
		period, times := repeats(keys[i:], loopWords)
		if times == 0 {
			kept = append(kept, words[i])
			i++
			continue
		}
		found = true
		kept = append(kept, words[i:i+period]...)
		i += period * times
		for i < len(words) && keys[i] == keys[i-period] { // a last, truncated repetition
			i++
		}
	}
	return kept, found
}

// Looping returns the length of the n-gram that a text repeats at its end, or
// 0, from its last tokens, the latest first: at least 4 times and 10 tokens.
func Looping[T comparable](latest []T) int {
	period, _ := repeats(latest, loopTokens)
	return period
}

// repeats returns the length of the shortest n-gram that a list begins with
// repeatedly, at least 4 times and with least elements in all, and the number
// of repetitions; 0, 0 if there is none.
func repeats[T comparable](list []T, least int) (period, times int) {
	for p := 1; p <= loopPeriod && p*loopTimes <= len(list); p++ {
		n := 1
		for (n+1)*p <= len(list) && slices.Equal(list[n*p:(n+1)*p], list[:p]) {
			n++
		}
		if n >= loopTimes && n*p >= least {
			return p, n
		}
	}
	return 0, 0
}
