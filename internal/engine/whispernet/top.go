package whispernet

import "math"

// Candidate is a possible next token.
type Candidate struct {
	Token   int32
	LogProb float32
}

// Top returns the k most likely tokens, most likely first; the smaller number
// precedes on ties. Tokens of probability 0 are omitted. It overwrites into.
func Top(logProbs []float32, k int, into []Candidate) []Candidate {
	into = into[:0]
	least := float32(math.Inf(-1)) // of the tokens so far, once there are k
	for i, p := range logProbs {
		if !(p > least) {
			continue
		}
		at := len(into)
		for at > 0 && p > into[at-1].LogProb {
			at--
		}
		if len(into) < k {
			into = append(into, Candidate{})
		}
		copy(into[at+1:], into[at:])
		into[at] = Candidate{int32(i), p}
		if len(into) == k {
			least = into[k-1].LogProb
		}
	}
	return into
}
