package wordtimes

import (
	"math"
	"slices"
)

// filterWidth is the width of the median filter over positions, as Whisper has it.
const filterWidth = 7

// matrix is a table of numbers in one slice.
type matrix struct {
	rows, columns int
	values        []float32
}

func newMatrix(rows, columns int) matrix {
	return matrix{rows, columns, make([]float32, rows*columns)}
}

func (m matrix) row(i int) []float32 { return m.values[i*m.columns : (i+1)*m.columns] }

// attention returns how much each token of the text and EOT attends to each of the
// first positions, as Whisper's timing does it: softmax over the positions, normalized
// over the tokens, smoothed by a median filter, the mean of the heads. A row is that
// of the token before, which is read when the token is to be said. The scores are
// overwritten.
func attention(scores [][][]float32, prefix, positions int) matrix {
	tokens := len(scores[0])
	m := newMatrix(tokens-prefix, positions)
	weight := 1 / float32(len(scores))
	mean, deviation := make([]float32, positions), make([]float32, positions)
	for _, head := range scores {
		for i, row := range head {
			head[i] = row[:positions]
			softmax(head[i])
		}
		normalize(head, mean, deviation)
		for i := range m.rows {
			addMedians(m.row(i), head[prefix-1+i], weight)
		}
	}
	return m
}

// softmax turns scores into probabilities in place.
func softmax(x []float32) {
	largest := slices.Max(x)
	var sum float32
	for i, v := range x {
		e := float32(math.Exp(float64(v - largest)))
		x[i] = e
		sum += e
	}
	for i := range x {
		x[i] /= sum
	}
}

// normalize brings each column to a mean of 0 and a standard deviation of 1.
func normalize(rows [][]float32, mean, deviation []float32) {
	clear(mean)
	clear(deviation)
	n := float32(len(rows))
	for _, row := range rows {
		for j, v := range row {
			mean[j] += v
		}
	}
	for j := range mean {
		mean[j] /= n
	}
	for _, row := range rows {
		for j, v := range row {
			d := v - mean[j]
			deviation[j] += d * d
		}
	}
	for j, v := range deviation {
		deviation[j] = max(float32(math.Sqrt(float64(v/n))), math.SmallestNonzeroFloat32)
	}
	for _, row := range rows {
		for j := range row {
			row[j] = (row[j] - mean[j]) / deviation[j]
		}
	}
}

// addMedians adds the medians of filterWidth neighbors, times a weight; at the borders
// the row is mirrored.
func addMedians(sum, row []float32, weight float32) {
	const half = filterWidth / 2
	n := len(row)
	if n <= half {
		for j, v := range row {
			sum[j] += v * weight
		}
		return
	}
	var edge [filterWidth]float32
	for j := range n {
		near := edge[:]
		if j >= half && j+half < n {
			near = row[j-half : j+half+1]
		} else {
			for k := range edge {
				at := j - half + k
				if at < 0 {
					at = -at
				}
				if at >= n {
					at = 2*(n-1) - at
				}
				edge[k] = row[at]
			}
		}
		sum[j] += median((*[filterWidth]float32)(near)) * weight
	}
}

// median is the middle of seven numbers, by the shortest known network of comparisons.
func median(x *[filterWidth]float32) float32 {
	a, b, c, d, e, f, g := x[0], x[1], x[2], x[3], x[4], x[5], x[6]
	a, f = sorted(a, f)
	a, d = sorted(a, d)
	b, g = sorted(b, g)
	c, e = sorted(c, e)
	_, b = sorted(a, b)
	d, f = sorted(d, f)
	c, g = sorted(c, g)
	c, d = sorted(c, d)
	d, _ = sorted(d, g)
	e, _ = sorted(e, f)
	b, e = sorted(b, e)
	_, d = sorted(b, d)
	d, _ = sorted(d, e)
	_ = c
	return d
}

func sorted(a, b float32) (less, more float32) {
	if b < a {
		return b, a
	}
	return a, b
}

// The steps of a warping path.
const (
	both     = iota // to the next token and position
	token           // to the next token
	position        // to the next position
)

// warp returns the position at which each row begins on the path through the matrix
// that gathers most, as Whisper's dynamic time warping does it.
func warp(m matrix) []int {
	width := m.columns + 1
	before, now := make([]float32, width), make([]float32, width)
	steps := make([]uint8, (m.rows+1)*width)
	inf := float32(math.Inf(1))
	for j := 1; j < width; j++ {
		before[j], steps[j] = inf, position
	}
	for i := 1; i <= m.rows; i++ {
		row, step := m.row(i-1), steps[i*width:(i+1)*width]
		now[0], step[0] = inf, token
		for j := 1; j < width; j++ {
			cost, s := now[j-1], uint8(position)
			if c0, c1 := before[j-1], before[j]; c0 < c1 && c0 < cost {
				cost, s = c0, both
			} else if c1 < c0 && c1 < cost {
				cost, s = c1, token
			}
			now[j], step[j] = cost-row[j-1], s
		}
		before, now = now, before
	}
	begins := make([]int, m.rows)
	for i, j := m.rows, m.columns; i > 0; {
		begins[i-1] = max(j-1, 0)
		switch steps[i*width+j] {
		case both:
			i, j = i-1, j-1
		case token:
			i--
		default:
			j--
		}
	}
	return begins
}
