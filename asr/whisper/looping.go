package whisper

import "slices"

// Loops, as in decode.Unloop, but detected during decoding: an n-gram of up to
// loopPeriod tokens, repeated loopTimes times in a row, loopTokens or more in
// all. People do say things twice, and "no no no no".
const (
	loopPeriod = 24
	loopTimes  = 4
	loopTokens = 10
)

// looping returns the length of the n-gram that a text (without time marks)
// repeats at its end; 0 if it does not.
func looping(text []int32) int {
	n := len(text)
	for period := 1; period <= loopPeriod; period++ {
		need := max(period*loopTimes, (loopTokens+period-1)/period*period)
		if need > n {
			continue
		}
		if tail := text[n-need:]; slices.Equal(tail[period:], tail[:need-period]) {
			return period
		}
	}
	return 0
}

// unloop cuts a text that ended in a loop after the loop's first round.
func unloop(tokens []token, begin int32) []token {
	var text []int32
	var place []int // in tokens
	for i, t := range tokens {
		if t.id < begin {
			text, place = append(text, t.id), append(place, i)
		}
	}
	period := looping(text)
	if period == 0 {
		return tokens
	}
	n := len(text)
	for n > period && text[n-1] == text[n-1-period] {
		n--
	}
	return tokens[:place[n-1]+1]
}
