package wordtimes

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainAttention is OpenAI's published method, step by step.
func plainAttention(scores [][][]float32, prefix, positions int) [][]float64 {
	tokens := len(scores[0])
	sum := make([][]float64, tokens-prefix)
	for i := range sum {
		sum[i] = make([]float64, positions)
	}
	for _, head := range scores {
		p := make([][]float64, tokens)
		for i, row := range head {
			p[i] = make([]float64, positions)
			var all float64
			for j := range positions {
				p[i][j] = math.Exp(float64(row[j]))
				all += p[i][j]
			}
			for j := range positions {
				p[i][j] /= all
			}
		}
		for j := range positions {
			var mean, square float64
			for i := range tokens {
				mean += p[i][j] / float64(tokens)
			}
			for i := range tokens {
				square += (p[i][j] - mean) * (p[i][j] - mean) / float64(tokens)
			}
			for i := range tokens {
				p[i][j] = (p[i][j] - mean) / math.Sqrt(square)
			}
		}
		for i := range sum {
			for j := range positions {
				var near []float64
				for k := j - 3; k <= j+3; k++ {
					at := k
					if at < 0 {
						at = -at
					}
					if at >= positions {
						at = 2*positions - 2 - at
					}
					near = append(near, p[prefix-1+i][at])
				}
				slices.Sort(near)
				sum[i][j] += near[3] / float64(len(scores))
			}
		}
	}
	return sum
}

func randomScores(random *rand.Rand, heads, tokens, positions int) [][][]float32 {
	scores := make([][][]float32, heads)
	for h := range scores {
		scores[h] = make([][]float32, tokens)
		for i := range scores[h] {
			for range positions {
				scores[h][i] = append(scores[h][i], float32(random.NormFloat64()*3))
			}
		}
	}
	return scores
}

func TestAttentionMatchesWhispers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	scores := randomScores(random, 3, 9, 40)
	want := plainAttention(scores, 4, 33)
	got := attention(scores, 4, 33)
	require.Equal(t, 5, got.rows)
	for i := range want {
		for j, v := range want[i] {
			assert.InDelta(t, v, got.row(i)[j], 1e-4)
		}
	}
	short := attention(randomScores(random, 1, 5, 3), 3, 3)
	assert.False(t, slices.ContainsFunc(short.values, func(v float32) bool { return math.IsNaN(float64(v)) }), "too short for the filter")
}

// most returns the greatest sum of a path that ends in a cell, by trying all
// paths.
func most(m matrix, row, column int) float64 {
	here := float64(m.row(row)[column])
	if row == 0 && column == 0 {
		return here
	}
	best := math.Inf(-1)
	for _, step := range [][2]int{{1, 1}, {1, 0}, {0, 1}} {
		if r, c := row-step[0], column-step[1]; r >= 0 && c >= 0 {
			best = max(best, most(m, r, c))
		}
	}
	return here + best
}

func TestWarpFindsTheBestPath(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		m := newMatrix(1+random.IntN(4), 1+random.IntN(6))
		for i := range m.values {
			m.values[i] = float32(random.NormFloat64())
		}
		begins := warp(m)
		require.Len(t, begins, m.rows)
		assert.Zero(t, begins[0])
		// a row ends where the next begins, or one position before
		reached := map[int]float64{0: 0}
		for i := range m.rows {
			next := map[int]float64{}
			var sum float64
			for j := begins[i]; j < m.columns; j++ {
				sum += float64(m.row(i)[j])
				end := j
				if i+1 < m.rows && end != begins[i+1] && end+1 != begins[i+1] || i+1 == m.rows && end+1 < m.columns {
					continue
				}
				best := math.Inf(-1)
				for _, v := range reached {
					best = max(best, v)
				}
				next[end] = best + sum
			}
			reached = next
		}
		best := math.Inf(-1)
		for _, v := range reached {
			best = max(best, v)
		}
		assert.InDelta(t, most(m, m.rows-1, m.columns-1), best, 1e-4)
	}
}

func TestMedian(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		var x [filterWidth]int32
		for i := range x {
			x[i] = int32(random.IntN(10))
		}
		sorted := slices.Clone(x[:])
		slices.Sort(sorted)
		assert.Equal(t, sorted[3], median(&x))
	}
}

func TestExp(t *testing.T) {
	for x := float32(0); x > -86; x -= 0.01 {
		want := math.Exp(float64(x))
		assert.InDelta(t, 1, float64(exp(x))/want, 1e-6, x)
	}
	assert.Zero(t, exp(float32(math.Inf(-1))))
	assert.Less(t, flip(int32(math.Float32bits(-2))), flip(int32(math.Float32bits(-1))))
}

func BenchmarkAttentionAndWarp(b *testing.B) {
	scores := randomScores(rand.New(rand.NewPCG(7, 8)), 8, 200, 1500)
	for b.Loop() {
		warp(attention(scores, 4, 1500))
	}
}
