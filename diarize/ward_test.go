package diarize

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A window unlike all others does not take the place of a voice.
func TestAnOutlierIsNoVoice(t *testing.T) {
	x, truth := simulate(rand.New(rand.NewPCG(4, 4)), []int{40, 30, 20}, simulated{low: 0.35, high: 0.5})
	for d, v := range gauss(rand.New(rand.NewPCG(8, 8)), make([]float64, x.dim)) {
		x.row(7)[d] = float32(v) // a cough
	}
	merges, err := averageLinkage(t.Context(), x, 1)
	require.NoError(t, err)
	base := cut(merges, x.n, 20)
	s := newSums(x, base, 20)
	steps := s.ward()
	require.Len(t, steps, 19)
	for n := 1; n <= 20; n++ {
		assert.Equal(t, n, distinct(cut(steps, 20, n)), "%d groups", n)
	}
	labels := make([]int, x.n)
	for i, c := range base {
		labels[i] = cut(steps, 20, 3)[c]
	}
	assert.GreaterOrEqual(t, agreement(labels, truth), 0.98)
}
