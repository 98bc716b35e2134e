package diarize

import "math"

// The probability that the number of voices is right, by logistic regression on
// the difference between the two most similar voices (likeness.difference).
// Fitted on half of ninety-nine recordings with two models; see
// docs/models.md#how-many-voices for the other half.
const (
	oneVoiceRight   = 0.85 // for one voice, which differs from no other
	certaintyOffset = -1.32
	certaintySlope  = 2.85
)

// certainty returns the probability that k, the number of labels, is the number
// of voices.
func (e *Embeddings) certainty(labels []int, k int) float64 {
	if k <= 1 {
		return oneVoiceRight
	}
	s := newSums(e.vectors, labels, k)
	s.overlaps = s.overlapping(e.vectors, e.Windows)
	alike, least := s.likeness(counting(k), k), math.Inf(1)
	for g := range k {
		for h := range g {
			least = min(least, alike.difference(g, h))
		}
	}
	return 1 / (1 + math.Exp(-certaintyOffset-certaintySlope*least))
}
