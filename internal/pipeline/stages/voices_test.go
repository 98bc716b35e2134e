package stages

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
)

// Voices are found in speech too quiet for the transcript, and through a short
// pause.
func TestQuietSpeechHasVoices(t *testing.T) {
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

// TestSureSpeech: a stretch is surely speech if the detector is nearly certain
// of a second of it.
func TestSureSpeech(t *testing.T) {
	probs := slices.Concat(slices.Repeat([]float32{0}, 10), slices.Repeat([]float32{0.9}, sureWindows), slices.Repeat([]float32{0.7}, 50))
	s := &Speech{Probabilities: coarse(probs)}
	all := audio.Span{End: len(probs) * vad.Window}
	assert.True(t, s.sure(all))
	assert.True(t, s.sure(audio.Span{Start: 10 * vad.Window, End: (10 + sureWindows) * vad.Window}))
	assert.False(t, s.sure(audio.Span{Start: 11 * vad.Window, End: all.End}), "a window less")
	assert.False(t, s.sure(audio.Span{Start: (10 + sureWindows) * vad.Window, End: 2 * all.End}), "beyond the recording")
	assert.False(t, (&Speech{Spans: []audio.Span{all}}).sure(all), "without the detector's probabilities")
}

// TestEmbeddingReportsItsShare: long recordings move the percentage while their
// voices are embedded, and get every vector in order.
func TestEmbeddingReportsItsShare(t *testing.T) {
	var shares []float64
	s := &Stages{Embedded: func(share float64) { shares = append(shares, share) }}
	windows := make([]audio.Span, 3*embeddedAtOnce+8)
	for i := range windows {
		windows[i] = audio.Span{Start: i, End: i + 1}
	}
	vectors, err := workingEmbedder{echo{}, s}.Embed(t.Context(), nil, windows)
	require.NoError(t, err)
	require.Len(t, vectors, len(windows))
	for i, v := range vectors {
		assert.Equal(t, []float32{float32(i)}, v)
	}
	assert.Equal(t, []float64{0.32, 0.64, 0.96, 1}, shares)
}

// echo is an embedder whose vectors hold the windows' starts.
type echo struct{ diarize.Embedder }

func (echo) Embed(_ context.Context, _ *audio.PCM, windows []audio.Span) (vectors [][]float32, err error) {
	for _, w := range windows {
		vectors = append(vectors, []float32{float32(w.Start)})
	}
	return vectors, nil
}
