package stages

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
)

// Voices are found in speech too quiet for the transcript, and through a short
// pause.
func TestVoiced(t *testing.T) {
	effective, err := spec.Options{}.Effective()
	require.NoError(t, err)
	s := &Stages{Options: effective}
	var probs []float32
	for _, part := range []struct {
		windows     int
		probability float32
	}{{20, 0}, {30, 0.9}, {5, 0}, {30, 0.9}, {40, 0}, {20, 0.15}, {40, 0.02}} {
		for range part.windows {
			probs = append(probs, part.probability)
		}
	}
	pcm := audio.FromSamples(make([]float32, len(probs)*vad.Window))
	spans, err := s.voiced(pcm, &Speech{Probabilities: coarse(probs)})
	require.NoError(t, err)
	require.Len(t, spans, 2)
	for i, want := range []audio.Span{{Start: 20, End: 85}, {Start: 125, End: 145}} {
		assert.InDelta(t, want.Start*vad.Window, spans[i].Start, 2*vad.Window)
		assert.InDelta(t, want.End*vad.Window, spans[i].End, 2*vad.Window)
	}
	early := []audio.Span{{Start: 5, End: 9}}
	spans, err = s.voiced(pcm, &Speech{Spans: early})
	require.NoError(t, err)
	assert.Equal(t, early, spans, "without the detector's probabilities")
}
