package scores

import "slices"

// greedyRounds limits the rounds of a greedy combination.
const greedyRounds = 49

// improve moves segments between streams while that lowers the costs, in
// MeetEval's order and with its choice between equal moves. substitution is the
// cost of a replaced word; insertions and deletions cost 1.
func improve(segments, hyp [][]int, assignment []int, substitution int) []int {
	for range greedyRounds {
		next := newRound(segments, hyp, assignment, substitution).run(segments)
		if slices.Equal(next, assignment) {
			break
		}
		assignment = next
	}
	return assignment
}

// round is one pass over the segments.
type round struct {
	hyp          [][]int
	assignment   []int
	substitution int
	forward      [][]int   // per stream, the costs of its segments so far
	backward     [][][]int // per stream, the costs from each of its segments to the last
	passed       []int     // per stream, the segments already passed
	costs        []int     // per stream
}

func newRound(segments, hyp [][]int, assignment []int, substitution int) *round {
	r := &round{hyp: hyp, assignment: assignment, substitution: substitution, passed: make([]int, len(hyp))}
	for s, given := range assigned(segments, assignment, len(hyp)) {
		r.forward = append(r.forward, ascending(len(hyp[s])+1))
		column := ascending(len(hyp[s]) + 1)
		back := reversed(hyp[s])
		columns := [][]int{reversed(column)}
		for _, segment := range slices.Backward(given) {
			column = forwardColumn(column, back, reversed(segment), substitution)
			columns = append(columns, reversed(column))
		}
		slices.Reverse(columns)
		r.backward = append(r.backward, columns)
		r.costs = append(r.costs, columns[0][0])
	}
	return r
}

// run returns the streams of the segments after the pass.
func (r *round) run(segments [][]int) []int {
	var out []int
	n := len(r.hyp)
	with, without, updated := make([]int, n), make([]int, n), make([][]int, n)
	for i, segment := range segments {
		current, best := r.assignment[i], 0
		for s := range r.hyp {
			updated[s] = forwardColumn(r.forward[s], r.hyp[s], segment, r.substitution)
			if s == current {
				with[s], without[s] = r.costs[s], leastSum(r.forward[s], r.backward[s][r.passed[s]+1])
			} else {
				with[s], without[s] = leastSum(updated[s], r.backward[s][r.passed[s]]), r.costs[s]
			}
			if with[s]-without[s] < with[best]-without[best] {
				best = s
			}
		}
		if with[best]-without[best] == with[current]-without[current] {
			best = current
		}
		r.forward[best] = updated[best]
		r.passed[current]++
		if best != current {
			r.costs[best], r.costs[current] = with[best], without[current]
		}
		out = append(out, best)
	}
	return out
}

// forwardColumn extends a column of costs by the words of a segment.
func forwardColumn(column, hyp, segment []int, substitution int) []int {
	column = slices.Clone(column)
	for _, w := range segment {
		diag := column[0]
		column[0]++
		for j, h := range hyp {
			above := column[j+1]
			if w == h {
				column[j+1] = diag
			} else {
				column[j+1] = min(diag+substitution, column[j]+1, above+1)
			}
			diag = above
		}
	}
	return column
}

func leastSum(a, b []int) int {
	least := a[0] + b[0]
	for i := range a {
		least = min(least, a[i]+b[i])
	}
	return least
}

func ascending(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func reversed(list []int) []int {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}
