package whispernet

// Candidate is a token that may come next.
type Candidate struct {
	Token   int32
	LogProb float32
}

// Normalize turns logits into log probabilities in place (log-softmax over the values
// above -Inf) and returns the logarithm of the sum of the probabilities of the tokens
// from begin on, and the largest log probability below begin.
func Normalize(logits []float32, begin int32) (marks, best float32) { return 0, 0 }

// Top returns the k most likely tokens, the most likely first; of equals the one with
// the smaller number.
func Top(logProbs []float32, k int, into []Candidate) []Candidate { return nil }
