package models

import "math"

// Calibration estimates how much of a recognizer's text is correct from the
// mean logarithm of the probabilities that the model assigned to the text's
// tokens. The log odds that a word is correct are Offset + Slope times the log
// odds of their geometric mean (Platt 1999). A calibration is valid for one
// model; tools/confidence measures it.
type Calibration struct {
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`
}

// Confidence returns the expected share of correct words for a mean logarithm.
func (c Calibration) Confidence(meanLogProb float64) float64 {
	return 1 / (1 + math.Exp(-c.Offset-c.Slope*LogOdds(meanLogProb)))
}

// LogOdds returns the log odds of a probability given by its logarithm, within
// 0.001 and 0.999, because no model is more certain than that.
func LogOdds(logProb float64) float64 {
	p := min(max(math.Exp(logProb), 0.001), 0.999)
	return math.Log(p / (1 - p))
}

// Valid reports whether the confidence rises with the mean.
func (c Calibration) Valid() bool {
	return c.Slope > 0 && !math.IsInf(c.Slope, 1) && !math.IsNaN(c.Offset) && !math.IsInf(c.Offset, 0)
}
