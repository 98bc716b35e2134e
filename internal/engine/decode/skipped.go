package decode

import (
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
)

// The paces of speech, in seconds per letter as counted by weight. The 524
// sentences of the demo models' evaluation recordings have medians of 0.052 to
// 0.077, by language; the slowest of all has 0.107. A stretch is left without
// words if its words would be e times as slow as pace.
const (
	pace       = 0.075
	slowPace   = 0.1 // a text at this pace certainly skips no speech
	sparsePace = 0.2 // no one speaks this slowly
	// clauseEnds is the value of a pause after punctuation (log of pace).
	clauseEnds = 0.3
)

// LeastSkipped is the least reported speech without words, in seconds.
const LeastSkipped = 1.0

// Skip is a stretch of speech without words.
type Skip struct {
	// Before is the index of the next word, or the number of all words.
	Before int
	// Start and End are seconds of the file.
	Start, End float64
}

// Skipped returns the stretches of speech between two times of the file
// (seconds) that the recognized words skip. Recognizers that write one sentence
// after another sometimes skip a sentence and spread the written ones over the
// whole time. Skipped distributes the words in order over the stretches between
// silences of at least 100 ms, each at a pace as close to the usual one as
// possible, and returns the stretches of at least a second that are best left
// empty. It returns none unless at least one whole stretch is skipped and there
// is at least one second more speech than the words fill at a slow pace.
func Skipped(words []Word, from, to float64, speech []audio.Span) []Skip {
	spans, total := stretches(from, to, speech)
	n, m := len(words), len(spans)
	if n == 0 || m < 2 {
		return nil
	}
	sum := weights(words)
	if total-slowPace*sum[n] < LeastSkipped {
		return nil
	}
	// cost[k][i] is the cost if the first k stretches contain the first i
	// words; came is the first word of the last stretch.
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

// Brisk reports whether words in the given seconds of speech have the pace of
// continuous speech, so that no word can be missing.
func Brisk(words []Word, seconds float64) bool { return seconds <= slowPace*weights(words)[len(words)] }

// Fills reports whether words may be all words in the given seconds of speech.
func Fills(words []Word, seconds float64) bool {
	return seconds <= sparsePace*weights(words)[len(words)]
}
