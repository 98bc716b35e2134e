package wordtimes

import "math"

// filterWidth is the width of the median filter over positions, as in Whisper.
const filterWidth = 7

// matrix is a table of numbers in one slice.
type matrix struct {
	rows, columns int
	values        []float32
}

func newMatrix(rows, columns int) matrix { return matrix{rows, columns, make([]float32, rows*columns)} }

func (m matrix) row(i int) []float32 { return m.values[i*m.columns : (i+1)*m.columns] }

// attention returns how much each token of the text and EOT attends to each of
// the first positions, as in Whisper's timing: softmax over the positions,
// normalized over the tokens, smoothed by a median filter, averaged over the
// heads. A row holds the attention of the preceding token, which is read when
// the row's token is predicted. The scores are overwritten.
func attention(scores [][][]float32, prefix, positions int) matrix {
	tokens := len(scores[0])
	m := newMatrix(tokens-prefix, positions)
	weight := 1 / float32(len(scores))
	mean, deviation := make([]float32, positions), make([]float32, positions)
	keys := make([]int32, positions)
	for _, head := range scores {
		for i, row := range head {
			head[i] = row[:positions]
			softmax(head[i])
		}
		normalize(head, mean, deviation)
		for i := range m.rows {
			addMedians(m.row(i), head[prefix-1+i], weight, keys)
		}
	}
	return m
}

// softmax turns scores into probabilities in place.
func softmax(x []float32) {
	largest := x[0]
	for _, v := range x {
		if v > largest {
			largest = v
		}
	}
	var sum float32
	for i, v := range x {
		e := exp(v - largest)
		x[i] = e
		sum += e
	}
	scale := 1 / sum
	for i := range x {
		x[i] *= scale
	}
}

// exp returns e to a non-positive power, with relative error 2e-7: 2 to a whole
// power by the exponent's bits, times the remainder's series.
func exp(x float32) float32 {
	const log2e, highest, lowest = 1.44269504, 0.693359375, -2.12194440e-4 // ln 2 in two parts
	if x < -87 {
		return 0
	}
	n := float32(int32(x*log2e - 0.5))
	r := x - n*highest - n*lowest
	y := 1 + r*(1+r*(0.5+r*(0.16666667+r*(0.041666667+r*(0.0083333333+r*0.0013888889)))))
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
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
	for j, v := range deviation { // from here on the inverses
		if deviation[j] = 0; v > 0 {
			deviation[j] = 1 / float32(math.Sqrt(float64(v/n)))
		}
	}
	for _, row := range rows {
		for j, d := range deviation {
			row[j] = (row[j] - mean[j]) * d
		}
	}
}

// addMedians adds the medians of filterWidth neighbors, times a weight; the row
// is mirrored at its ends. keys has room for a row.
func addMedians(sum, row []float32, weight float32, keys []int32) {
	const half = filterWidth / 2
	n := len(row)
	if n <= half {
		for j, v := range row {
			sum[j] += v * weight
		}
		return
	}
	for j, v := range row {
		keys[j] = flip(int32(math.Float32bits(v)))
	}
	var edge [filterWidth]int32
	for j := range n {
		near := edge[:]
		if j >= half && j+half < n {
			near = keys[j-half : j+half+1]
		} else {
			for k := range edge {
				at := max(j-half+k, half-j-k)
				edge[k] = keys[min(at, 2*(n-1)-at)]
			}
		}
		sum[j] += math.Float32frombits(uint32(flip(median((*[filterWidth]int32)(near))))) * weight
	}
}

// flip turns a floating-point number's bits into an integer of the same order.
func flip(bits int32) int32 { return bits ^ bits>>31&math.MaxInt32 }

// median returns the median of seven numbers, by a sorting network.
func median(x *[filterWidth]int32) int32 {
	a, b, c, d, e, f, g := x[0], x[1], x[2], x[3], x[4], x[5], x[6]
	a, f = min(a, f), max(a, f)
	a, d = min(a, d), max(a, d)
	b, g = min(b, g), max(b, g)
	c, e = min(c, e), max(c, e)
	b = max(a, b)
	d, f = min(d, f), max(d, f)
	c, g = min(c, g), max(c, g)
	d = min(max(c, d), g)
	e = min(e, f)
	b, e = min(b, e), max(b, e)
	return min(max(b, d), e)
}

// The steps of a warping path.
const (
	both     = iota // to the next token and position
	token           // to the next token
	position        // to the next position
)

// warp returns the position at which each row begins on the path with the
// greatest sum through the matrix, as in Whisper's dynamic time warping.
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
