package whispernet

import "math"

// Candidate is a token that may come next.
type Candidate struct {
	Token   int32
	LogProb float32
}

// Normalize turns logits into log probabilities in place (log-softmax over the values
// above -Inf) and returns the logarithm of the sum of the probabilities of the tokens
// from begin on, and the largest log probability below begin.
func Normalize(logits []float32, begin int32) (marks, best float32) {
	top := float32(math.Inf(-1))
	for _, v := range logits {
		top = max(top, v)
	}
	var sum, after float64
	best = float32(math.Inf(-1))
	for i, v := range logits {
		e := math.Exp(float64(v - top))
		sum += e
		if int32(i) >= begin {
			after += e
		} else {
			best = max(best, v)
		}
	}
	whole := top + float32(math.Log(sum))
	for i := range logits {
		logits[i] -= whole
	}
	return float32(math.Log(after / sum)), best - whole
}

// Top returns the k most likely tokens, the most likely first; of equals the one with
// the smaller number.
func Top(logProbs []float32, k int, into []Candidate) []Candidate {
	into = into[:0]
	for i, v := range logProbs {
		if len(into) == k && v <= into[k-1].LogProb || math.IsInf(float64(v), -1) {
			continue
		}
		if len(into) < k {
			into = append(into, Candidate{})
		}
		j := len(into) - 1
		for ; j > 0 && into[j-1].LogProb < v; j-- {
			into[j] = into[j-1]
		}
		into[j] = Candidate{int32(i), v}
	}
	return into
}
