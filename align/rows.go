package align

import (
	"cmp"
	"math"
	"slices"
)

// Rows are a CTC model's log posteriors over one window. A row stores only the
// blank and likely tokens, so that hours fit in memory; all other tokens have
// the value -11.5.
type Rows struct {
	// Shift is the duration of a row in seconds.
	Shift float64

	from         []int32 // the start of each row in ids and logs, and the end
	ids          []uint32
	logs, blanks []float32
}

// floor is the log posterior of tokens that Rows leaves out. mostTokens is the
// most tokens stored per row; the demonstration model needs three on average.
const (
	floor      = -11.5 // ln 1e-5
	mostTokens = 32
)

// NewRows keeps the likely tokens of a window: scores has v numbers a row
// (row-major), norms the value to subtract from each row to get log posteriors.
func NewRows(scores []float32, norms []float64, v, blank int, shift float64) *Rows {
	r := &Rows{Shift: shift, from: make([]int32, 1, len(norms)+1), blanks: make([]float32, len(norms))}
	var order []int
	for t, norm := range norms {
		row := scores[t*v : (t+1)*v]
		r.blanks[t] = float32(min(float64(row[blank])-norm, 0))
		order = order[:0]
		least := float32(norm + floor)
		for id, s := range row {
			if s > least && id != blank {
				order = append(order, id)
			}
		}
		if len(order) > mostTokens {
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
			order = order[:mostTokens]
		}
		for _, id := range order {
			r.ids = append(r.ids, uint32(id))
			r.logs = append(r.logs, float32(min(float64(row[id])-norm, 0)))
		}
		r.from = append(r.from, int32(len(r.ids)))
	}
	r.ids, r.logs = slices.Clip(r.ids), slices.Clip(r.logs)
	return r
}

func (r *Rows) len() int { return len(r.blanks) }

// spoken returns the log probability that a row is not blank.
func (r *Rows) spoken(t int) float64 {
	return max(math.Log1p(-math.Exp(min(float64(r.blanks[t]), -1e-5))), floor)
}
