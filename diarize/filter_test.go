package diarize

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/audio"
)

func TestFilter(t *testing.T) {
	e := &Embeddings{
		Speech:  []audio.Span{{Start: 0, End: 10}, {Start: 20, End: 30}, {Start: 40, End: 50}},
		Windows: []audio.Span{{Start: 0, End: 10}, {Start: 20, End: 25}, {Start: 25, End: 30}, {Start: 40, End: 50}},
		Segment: []int{0, 1, 1, 2},
		vectors: matrix{data: []float32{1, 0, 0, 1, 0.6, 0.8, 0.8, 0.6}, n: 4, dim: 2},
	}
	got := e.Filter(func(s audio.Span) bool { return s.Start != 0 }, false)
	assert.Equal(t, []audio.Span{{Start: 20, End: 30}, {Start: 40, End: 50}}, got.Speech)
	assert.Equal(t, []int{0, 0, 1}, got.Segment)
	assert.Equal(t, []float32{0, 1}, got.vectors.row(0))
	assert.Equal(t, []float32{0.8, 0.6}, got.vectors.row(2))
	assert.Len(t, e.Windows, 4, "the original is unchanged")
	none := e.Filter(func(audio.Span) bool { return false }, false)
	assert.Empty(t, none.Windows)
}
