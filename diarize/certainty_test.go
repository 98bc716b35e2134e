package diarize

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// TestCertainty: the probability falls with the difference of two voices, and
// rises with the evenness of one voice.
func TestCertainty(t *testing.T) {
	const s = audio.SampleRate
	truth := []utterance{{audio.Span{Start: 0, End: 20 * s}, 0}, {audio.Span{Start: 20 * s, End: 40 * s}, 1}}
	pcm := audio.FromSamples(make([]float32, 40*s))
	find := func(angle float64, opt Options, speech ...audio.Span) *Result {
		e := newMadeUp(2, truth, 0.8)
		for d := range e.voice[1] {
			e.voice[1][d] = math.Cos(angle)*e.voice[0][d] + math.Sin(angle)*e.voice[1][d]
		}
		r, err := Diarize(t.Context(), e, pcm, speech, opt)
		require.NoError(t, err)
		return r
	}
	all := audio.Span{Start: 0, End: 40 * s}
	last := 1.0
	for _, angle := range []float64{math.Pi / 2, 1.35, 1.2} {
		r := find(angle, DefaultOptions(), all)
		require.Len(t, r.Speakers, 2, "%v", angle)
		require.NotNil(t, r.Probability)
		t.Logf("angle %.2f: %.3f", angle, *r.Probability)
		assert.Less(t, *r.Probability, last)
		last = *r.Probability
	}
	one := *find(1, DefaultOptions(), truth[0].Span).Probability
	assert.Greater(t, one, 0.9)
	missed := find(0.6, DefaultOptions(), all)
	require.Len(t, missed.Speakers, 1)
	t.Logf("one voice: %.3f, two that are taken for one: %.3f", one, *missed.Probability)
	assert.Less(t, *missed.Probability, one-0.01)
	assert.InDelta(t, 0.84, *find(1, DefaultOptions(), audio.Span{Start: 0, End: s}).Probability, 0.01, "too short to tell")
	given := DefaultOptions()
	given.NumSpeakers = 2
	assert.Nil(t, find(1, given, all).Probability, "the number is given")
	given.NumSpeakers, given.MinSpeakers, given.MaxSpeakers = 0, 3, 3
	assert.Nil(t, find(1, given, all).Probability, "the bounds are the number")
	assert.Nil(t, find(1, DefaultOptions()).Probability, "no speech")
}
