package whisper

import "github.com/otograph/otograph/internal/engine/decode"

// loopTokens is the least length of a loop that ends a decode.
const loopTokens = 10

// looping returns the length of the n-gram that a text repeats at its end, or
// 0, from its last tokens, without time marks, the latest first.
func looping(latest []int32) int {
	period, _ := decode.Repeats(latest, loopTokens)
	return period
}

// unloop cuts a text that ended in a loop after the loop's first round.
func unloop(tokens []token, begin int32) []token {
	var latest []int32
	var place []int // in tokens
	for i := len(tokens) - 1; i >= 0; i-- {
		if tokens[i].id < begin {
			latest, place = append(latest, tokens[i].id), append(place, i)
		}
	}
	period := looping(latest)
	if period == 0 {
		return tokens
	}
	last := 0
	for last < len(latest)-period && latest[last] == latest[last+period] {
		last++
	}
	return tokens[:place[last]+1]
}
