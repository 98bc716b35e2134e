package diarize

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// summing is an embedder whose vectors hold the sum of the samples and their number.
type summing struct{ Embedder }

func (summing) Embed(_ context.Context, pcm *audio.PCM, windows []audio.Span) (vectors [][]float32, err error) {
	for _, w := range windows {
		sum := float32(0)
		for _, x := range pcm.Samples(w.Start, w.End) {
			sum += x
		}
		vectors = append(vectors, []float32{sum, float32(w.Len())})
	}
	return vectors, nil
}

func (summing) Dim() int { return 2 }

// TestVectorOfAVoice: a voice's vector is the mean of its centroid, here mostly
// zero, and of the vector of four of its windows from all of its speech, in
// which shared sound occurs once; a single window keeps its own vector.
func TestVectorOfAVoice(t *testing.T) {
	x := make([]float32, 40*audio.SampleRate)
	for i := range x {
		x[i] = float32(i / audio.SampleRate)
	}
	e := &Embeddings{embedder: summing{}, pcm: audio.FromSamples(x)}
	labels := []int{0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3}
	for _, w := range [][2]float64{{0, 1.5}, {0.75, 2.25}, {3, 4}, {10, 11}, {12, 13}, {14, 15}, {16, 17}, {18, 19}, {20, 21}, {22, 23}, {24, 27}, {0, 0.5}, {0, 1}} {
		e.Windows = append(e.Windows, span(w[0], w[1]))
	}
	centre := newMatrix(4, 2)
	centre.row(1)[0], centre.row(3)[0] = 1, 1
	got, err := e.joined(t.Context(), labels, centre)
	require.NoError(t, err)
	assert.InDelta(t, (1+0.5)/2.25, got.row(0)[0]/got.row(0)[1], 1e-3, "0 to 2.25 s")
	assert.Equal(t, []float32{1, 0}, got.row(1))
	assert.InDelta(t, (12+16+20+1.5*25)/4.5, got.row(2)[0]/got.row(2)[1], 1e-3, "the second, fourth, sixth and eighth window, of the long one its middle")
	assert.Equal(t, []float32{0, 0}, centre.row(0), "the centroids stay")
	assert.InDelta(t, 1, got.row(3)[0]/got.row(3)[1], 1e-6, "the mean of the centroid and that vector")
}
