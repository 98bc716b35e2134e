package diarize

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/otograph/otograph/audio"
)

// Costs of changing the speaker from one window to the next, in units of
// cosine: two windows of one segment overlap by half, so a single differing
// window is more often noise than a speaker. Over a pause the cost falls with
// its length. Chosen on the test conversations; many values are good.
const (
	changeInside = 0.12 // between windows of one segment
	changeAcross = 0.06 // between adjacent segments
	pauseDecay   = 1.0  // seconds of pause that lower it to 1/e
)

// changeCosts returns the cost of a change before each window (the first is 0).
func changeCosts(e *Embeddings) []float64 {
	cost := make([]float64, len(e.Windows))
	for i := 1; i < len(cost); i++ {
		if e.Segment[i] == e.Segment[i-1] {
			cost[i] = changeInside
			continue
		}
		pause := max(0, float64(e.Windows[i].Start-e.Windows[i-1].End)/audio.SampleRate)
		cost[i] = changeAcross * math.Exp(-pause/pauseDecay)
	}
	return cost
}

// viterbi returns the labels with the largest sum of similarities to the
// centroids minus the costs of changes. cost[i], times scale, is the cost of a
// change between windows i−1 and i.
func viterbi(x, centre matrix, cost []float64, scale float64) []int {
	n, k := x.n, centre.n
	if n == 0 {
		return nil
	}
	from := make([]int32, n*k)
	score, next := make([]float64, k), make([]float64, k)
	for i := range n {
		best := floats.MaxIdx(score)
		for l := range k {
			prev := l
			if change := score[best] - scale*cost[i]; i > 0 && change > score[l] {
				prev = best
				next[l] = change
			} else {
				next[l] = score[l]
			}
			from[i*k+l] = int32(prev)
			next[l] += float64(dot1(x.row(i), centre.row(l)))
		}
		score, next = next, score
	}
	labels := make([]int, n)
	labels[n-1] = floats.MaxIdx(score)
	for i := n - 1; i > 0; i-- {
		labels[i-1] = int(from[i*k+labels[i]])
	}
	return labels
}

// settleRounds is the maximum number of re-assignments.
const settleRounds = 10

// settle re-assigns every window to its nearest centroid until none moves, and
// smooths over time, without ever losing a speaker: if full smoothing would
// lose one, it is weakened step by step, and finally omitted.
func settle(x matrix, labels []int, k int, cost []float64) []int {
	if k < 2 {
		return labels
	}
	moved := labels
	for range settleRounds {
		next := nearestCentroids(x, centroids(x, moved, k))
		if distinct(next) < k || slices.Equal(next, moved) {
			break
		}
		moved = next
	}
	centre := centroids(x, moved, k)
	for _, scale := range []float64{1, 0.5, 0.25} {
		if smooth := viterbi(x, centre, cost, scale); distinct(smooth) == k {
			return smooth
		}
	}
	return moved
}
