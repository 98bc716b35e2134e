package models

import "math"

// Calibration says how right a recognizer's text is, given the mean logarithm of the
// probabilities that the model gave the text's tokens: the log odds of a word's being
// right are Offset + Slope times the log odds of their geometric mean (Platt 1999). It
// holds for one model; bench/confidence measures it.
type Calibration struct {
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`
}

// Confidence returns the expected share of right words for a mean logarithm.
func (c Calibration) Confidence(meanLogProb float64) float64 {
	return 1 / (1 + math.Exp(-c.Offset-c.Slope*LogOdds(meanLogProb)))
}

// LogOdds returns the log odds of a probability given by its logarithm, between
// those of 0.001 and 0.999: no model is surer than that.
func LogOdds(logProb float64) float64 {
	p := min(max(math.Exp(logProb), 0.001), 0.999)
	return math.Log(p / (1 - p))
}

// Valid reports whether the numbers make a confidence that rises with the mean.
func (c Calibration) Valid() bool {
	return c.Slope > 0 && !math.IsInf(c.Slope, 1) && !math.IsNaN(c.Offset) && !math.IsInf(c.Offset, 0)
}
