package events

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// An event is returned six seconds after its end, and the stream's memory does
// not grow.
func TestStreamReturnsEarly(t *testing.T) {
	s, err := NewStream(Grid{Window: 1, Hop: 0.5}, DefaultOptions())
	require.NoError(t, err)
	dog := index("Dog")
	returned := 0
	for frame := range 2000 {
		scores := make([]float32, spec.NumEventClasses)
		scores[speech] = 0.9
		if frame%50 < 4 {
			scores[dog] = 0.8
		}
		list, err := s.Push(scores)
		require.NoError(t, err)
		for _, e := range list {
			returned++
			assert.Equal(t, "Dog", e.Class.DisplayName)
			assert.InDelta(t, 5.25, float64(frame)*0.5-e.End, 0.51)
		}
		assert.Less(t, len(s.closed), 3)
	}
	assert.Equal(t, 40, returned)
	last := s.Flush(1000)
	require.Len(t, last, 1)
	assert.Equal(t, Event{Start: 0, End: 1000, Class: spec.EventClassAt(speech), Confidence: 0.9, Peak: last[0].Peak, frames: 2000}, last[0])
	_, err = s.Push(nil)
	assert.ErrorContains(t, err, "frame 2000 with 0 scores")
}
