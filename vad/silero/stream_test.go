package silero

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/vad"
)

// Window by window, the model gives the probabilities of the whole recording.
func TestStreamGivesTheSameProbabilities(t *testing.T) {
	m := open(t, embedded(t), Options{})
	pcm := audio.FromSamples(jfk(t))
	want, err := m.Probabilities(t.Context(), pcm)
	require.NoError(t, err)
	s, err := m.Stream()
	require.NoError(t, err)
	var got []float32
	for at := 0; at < pcm.Len(); at += vad.Window {
		p, err := s.Next(pcm.Samples(at, at+vad.Window))
		require.NoError(t, err)
		got = append(got, p)
	}
	within(t, want, got, 1e-5)
	require.NoError(t, s.Close())
	require.NoError(t, m.Close())
	_, err = m.Stream()
	assert.ErrorIs(t, err, ort.ErrClosed)
}
