package onnx

import (
	"math"
	"slices"
)

// head is a family's CTC output layer: it turns rows of scores into tokens.
type head struct {
	vocab *vocabulary
	blank int
	// shift is the duration of a row in seconds.
	shift float64
	// logits reports that the rows are raw scores, which need log-softmax.
	logits bool
}

// norms returns each row's log-sum-exp, or zeros for log probabilities.
func (h *head) norms(scores []float32, rows, v int) []float64 {
	norms := make([]float64, rows)
	if !h.logits {
		return norms
	}
	// If the blank leads every other token by that much, their sum is less than
	// 0.001 of it and can be left out.
	lead := float32(math.Log(float64(v)) + 7)
	for t := range rows {
		row := scores[t*v : (t+1)*v]
		norms[t] = float64(row[h.blank])
		near := func(x float32) bool { return x > row[h.blank]-lead }
		if slices.ContainsFunc(row[:h.blank], near) || slices.ContainsFunc(row[h.blank+1:], near) {
			norms[t] = logSum(row)
		}
	}
	return norms
}

func argmax(x []float32) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}

// logSum returns ln Σ e^x.
func logSum(x []float32) float64 {
	top := float64(slices.Max(x))
	var s float64
	for _, v := range x {
		s += math.Exp(float64(v) - top)
	}
	return top + math.Log(s)
}
