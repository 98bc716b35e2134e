package diarize

import "math"

// The probability that the number of voices is right, by logistic regression:
// for several voices on the difference of the two most similar ones
// (likeness.difference), for one voice on the similarity of its windows
// (evenness). Fitted on half of the results of two models for 159
// recordings. Where evidence decides, the regression is on its ratio for the
// two most similar voices, or on evenness, fitted on the first 12 and 25 s of
// 92 conversations, because the rules of evidence were chosen on whole
// conversations. See docs/measurements/speakers.md for the recordings left out.
const (
	oneVoiceOffset    = -5.7
	oneVoiceSlope     = 9.2
	certaintyOffset   = -1.2
	certaintySlope    = 3.25
	evidenceOffset    = -1.13
	evidenceSlope     = 0.69
	evidenceOneOffset = -10.9
	evidenceOneSlope  = 15.5
)

// usualEvenness is the evenness of a recording that is too short to have one.
const usualEvenness = 0.8

// certainty returns the probability that the labels' number of voices k is
// right; stated are the embedder's cosines, if they decided the number.
func (e *Embeddings) certainty(labels []int, k int, stated cosines) float64 {
	if k == 0 {
		return 0
	}
	s := newSums(e.vectors, labels, k)
	s.overlaps = s.overlapping(e.vectors, e.Windows)
	alike := s.likeness(counting(k), k)
	switch {
	case k == 1 && stated.one > 0:
		return logistic(evidenceOneOffset + evidenceOneSlope*evenness(e.vectors, alike.usual))
	case k == 1:
		return logistic(oneVoiceOffset + oneVoiceSlope*evenness(e.vectors, alike.usual))
	case stated.one > 0:
		s.cosines, s.parted = stated, parted(e.vectors, e.Windows, e.windowsByTile())
		_, ratio := s.evidence().best()
		return logistic(evidenceOffset + evidenceSlope*math.Log1p(max(leastEvidence-ratio, 0)))
	}
	least := math.Inf(1)
	for g := range k {
		for h := range g {
			least = min(least, alike.difference(g, h))
		}
	}
	return logistic(certaintyOffset + certaintySlope*least)
}

// evenness returns the similarity of windows anywhere in the recording (usual)
// relative to that of successive windows, which mostly are of one voice: near 1
// for one voice, with any model, and less for several voices that were not
// separated.
func evenness(x matrix, usual float64) float64 {
	next := 0.0
	for i := 1; i < x.n; i++ {
		next += float64(dot1(x.row(i-1), x.row(i)))
	}
	if usual == 0 || next <= 0 {
		return usualEvenness
	}
	return usual * float64(x.n-1) / next
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
