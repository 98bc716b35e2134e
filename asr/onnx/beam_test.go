package onnx

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// decode searches rows whose norms are not known.
func (h *head) decode(scores []float32, rows, v, width int, f fusion) []emission {
	return h.search(scores, h.norms(scores, rows, v), v, width, f)
}

// TestWiderBeamFindsLikelierSequences checks that a wider search finds a
// sequence whose beginning a narrow one drops.
func TestWiderBeamFindsLikelierSequences(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	v := sampleVocabulary(t, "a", "b", "c", "d")
	h := head{vocab: v, blank: 0, shift: 0.04}
	const rows, trials = 12, 200
	better := 0
	for range trials {
		scores := make([]float32, rows*5)
		for i := range rows {
			var w [5]float64
			var sum float64
			for k := range w {
				w[k] = r.ExpFloat64() + 0.05
				sum += w[k]
			}
			for k := range w {
				scores[i*5+k] = float32(math.Log(w[k] / sum))
			}
		}
		if textFrom(v, h.decode(scores, rows, 5, 2, fusion{})) != textFrom(v, h.decode(scores, rows, 5, 40, fusion{})) {
			better++
		}
		assert.Equal(t, h.decode(scores, rows, 5, 1, fusion{}), h.decode(scores, rows, 5, 0, fusion{}), "at least one prefix is kept")
	}
	assert.Greater(t, better, trials/10)
}
