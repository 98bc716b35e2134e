package ctc

import "math"

// head is the CTC output layer of a family: how rows of scores become tokens.
type head struct {
	vocab *vocabulary
	blank int
	// shift is how long one row lasts, in seconds.
	shift float64
	// logits says that the rows are raw: log-softmax is still to be taken.
	logits bool
}

// decode turns rows of v scores (row-major) into tokens: by the best token of
// each row, or by a prefix beam search when there is something to boost.
func (h *head) decode(scores []float32, rows, v int, boost *booster) []emission {
	if boost != nil {
		return h.beam(scores, rows, v, boost)
	}
	return h.greedy(scores, rows, v)
}

func (h *head) greedy(scores []float32, rows, v int) []emission {
	var out []emission
	last := h.blank
	for t := range rows {
		row := scores[t*v : (t+1)*v]
		best := argmax(row)
		if best == h.blank {
			last = best
			continue
		}
		p := float64(row[best])
		if h.logits {
			p -= logSum(row)
		}
		p = min(p, 0)
		if best == last {
			e := &out[len(out)-1]
			e.end = float64(t+1) * h.shift
			e.logProb = max(e.logProb, p)
			continue
		}
		out = append(out, emission{id: best, start: float64(t) * h.shift, end: float64(t+1) * h.shift, logProb: p})
		last = best
	}
	return out
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

// logSum is ln Σ e^x.
func logSum(x []float32) float64 {
	top := float64(x[argmax(x)])
	var s float64
	for _, v := range x {
		s += math.Exp(float64(v) - top)
	}
	return top + math.Log(s)
}
