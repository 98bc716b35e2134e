package decode

import (
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
)

// The paces of speech, in seconds for a letter as weight counts them. The 524 sentences of
// the evaluation recordings of the demo models have, by language, medians of 0.052 to
// 0.077; the slowest of all 0.107. A stretch is rather left without words than given some
// that would be e times as slow as pace.
const (
	pace       = 0.075
	slowPace   = 0.1 // leaves no doubt that a text has all its speech
	sparsePace = 0.2 // nobody speaks so slowly
	// clauseEnds is the value of a pause after punctuation, in logarithms of
	// pace.
	clauseEnds = 0.3
)

// LeastSkipped is the least speech without words that is told of, in seconds.
const LeastSkipped = 1.0

// Skip is a stretch of speech without words.
type Skip struct {
	// Before is the word that it lies before; the number of words for a last one.
	Before int
	// Start and End are seconds of the file.
	Start, End float64
}

// Skipped returns the stretches of speech between two times of the file
// (seconds) that the recognized words have passed over. Recognizers that write
// sentence after sentence sometimes skip one and spread the sentences that they
// have written over all the time. Skipped distributes the words over the
// stretches between silences of 100 ms or more, in order, each at a pace as
// near to the usual one as possible, and returns the stretches of a second or
// more that are best left empty. It requires a whole stretch, and at least one
// second more speech than the words fill at a slow pace; otherwise it returns
// none.
func Skipped(words []Piece, from, to float64, speech []audio.Span) []Skip {
	spans, total := stretches(from, to, speech)
	n, m := len(words), len(spans)
	if n == 0 || m < 2 {
		return nil
	}
	sum := weights(words)
	if total-slowPace*sum[n] < LeastSkipped {
		return nil
	}
	// cost[k][i]: the first k stretches have the first i words; came: where the last
	// stretch's words begin
	cost, came := make([][]float64, m+1), make([][]int, m+1)
	for k := range cost {
		cost[k], came[k] = slices.Repeat([]float64{math.Inf(1)}, n+1), make([]int, n+1)
	}
	cost[0][0] = 0
	for k, s := range spans {
		d := s.end - s.start
		for i := range n + 1 {
			cost[k+1][i], came[k+1][i] = cost[k][i]+min(d, 1), i
			for j := range i {
				c := cost[k][j] + math.Abs(math.Log(d/(pace*(sum[i]-sum[j]))))
				if endsClause(words[i-1].Text) {
					c -= clauseEnds
				}
				if c < cost[k+1][i] {
					cost[k+1][i], came[k+1][i] = c, j
				}
			}
		}
	}
	var skips []Skip
	for k, i := m, n; k > 0; k-- {
		if s := spans[k-1]; came[k][i] == i && s.end-s.start >= LeastSkipped {
			skips = append(skips, Skip{i, s.start, s.end})
		}
		i = came[k][i]
	}
	slices.Reverse(skips)
	return skips
}

// Brisk reports whether words said within a number of seconds of speech have
// the pace of people who speak without a pause, so that none can be missing.
func Brisk(words []Piece, seconds float64) bool {
	return seconds <= slowPace*weights(words)[len(words)]
}

// Fills reports whether words may be all that is said in a number of seconds of
// speech.
func Fills(words []Piece, seconds float64) bool {
	return seconds <= sparsePace*weights(words)[len(words)]
}
