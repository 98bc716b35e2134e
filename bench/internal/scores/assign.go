package scores

import (
	"math"
	"slices"
)

// Assign matches rows with columns one to one so that the sum of the matched
// costs is least (Crouse, On implementing 2D rectangular assignment algorithms,
// 2016). Every row of cost has the given number of columns. Assign returns the
// column of each row, −1 for a row without one. Of several best assignments it
// returns the one that SciPy's linear_sum_assignment chooses.
func Assign(cost [][]float64, columns int) []int {
	rows := len(cost)
	out := slices.Repeat([]int{-1}, rows)
	if columns < rows { // the algorithm places row by row, so there must not be more rows than columns
		turned := make([][]float64, columns)
		for c := range turned {
			turned[c] = make([]float64, rows)
			for r := range rows {
				turned[c][r] = cost[r][c]
			}
		}
		for c, r := range Assign(turned, rows) {
			out[r] = c
		}
		return out
	}
	m := matching{cost: cost, u: make([]float64, rows), v: make([]float64, columns), rowOf: slices.Repeat([]int{-1}, columns), columnOf: out}
	for r := range rows {
		m.place(r)
	}
	return out
}

// matching is an assignment of the rows placed so far, with its dual variables.
type matching struct {
	cost            [][]float64
	u, v            []float64
	rowOf, columnOf []int
}

// place adds a row along the shortest augmenting path.
func (m *matching) place(row int) {
	columns := len(m.v)
	shortest, path := make([]float64, columns), make([]int, columns)
	remaining := make([]int, columns)
	seenRow, seenColumn := make([]bool, len(m.u)), make([]bool, columns)
	for c := range columns {
		shortest[c] = math.Inf(1)
		remaining[c] = columns - c - 1 // reversed, so that equal costs yield the identity
	}
	least, sink := 0.0, -1
	for r := row; sink < 0; {
		seenRow[r] = true
		at, lowest := -1, math.Inf(1)
		for i, c := range remaining {
			if d := least + m.cost[r][c] - m.u[r] - m.v[c]; d < shortest[c] {
				path[c], shortest[c] = r, d
			}
			if shortest[c] < lowest || shortest[c] == lowest && m.rowOf[c] < 0 {
				at, lowest = i, shortest[c]
			}
		}
		least = lowest
		c := remaining[at]
		if r = m.rowOf[c]; r < 0 {
			sink = c
		}
		seenColumn[c] = true
		remaining[at] = remaining[len(remaining)-1]
		remaining = remaining[:len(remaining)-1]
	}
	m.u[row] += least
	for r, seen := range seenRow {
		if seen && r != row {
			m.u[r] += least - shortest[m.columnOf[r]]
		}
	}
	for c, seen := range seenColumn {
		if seen {
			m.v[c] -= least - shortest[c]
		}
	}
	for c := sink; ; {
		r := path[c]
		m.rowOf[c] = r
		c, m.columnOf[r] = m.columnOf[r], c
		if r == row {
			return
		}
	}
}
