package dsp

import "math"

// Levels returns the power in decibels of each whole frame of length samples,
// which begin every hop samples.
func Levels(x []float32, length, hop int) []float64 {
	out := make([]float64, 0, len(x)/hop)
	for ; len(x) >= length; x = x[hop:] {
		var energy float64
		for _, v := range x[:length] {
			energy += float64(v) * float64(v)
		}
		out = append(out, 10*math.Log10(energy/float64(length)+1e-12))
	}
	return out
}
