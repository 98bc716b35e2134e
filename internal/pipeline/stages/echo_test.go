package stages

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// exchange returns two voices of a synthetic conversation, each alone, and the
// times of their speech: in turn, except for one second of both.
func exchange(t *testing.T) (voices [2][]float32, turns [2][]audio.Span) {
	t.Helper()
	pcm, err := audio.Open(t.Context(), audio.File("../../../diarize/testdata/conv3.flac"), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	seconds := func(s float64) int { return int(s * audio.SampleRate) }
	for i := range voices {
		voices[i] = make([]float32, seconds(30))
	}
	for i, turn := range [][2]float64{{0.63, 9.82}, {10.22, 17.13}, {23.36, 31.68}, {33.01, 37.47}} { // of two voices, alternating
		length := min(turn[1]-turn[0], 6)
		at := seconds(0.5 + 7*float64(i))
		if i == 3 {
			at -= seconds(1.5) // half a second of pause, and one second of both voices
		}
		span := audio.Span{Start: at, End: at + seconds(length)}
		copy(voices[i%2][span.Start:span.End], pcm.Samples(seconds(turn[0]), seconds(turn[0]+length)))
		turns[i%2] = append(turns[i%2], span)
	}
	return voices, turns
}

// echoed returns the echo of a voice in a room: late, soft and with
// reverberation. The race detector would take longer than the test.
//
//go:norace
func echoed(voice []float32, delay, decay, decibels float64, noise *rand.Rand) []float32 {
	out := make([]float32, len(voice))
	late, length := int(delay*audio.SampleRate), int(decay*audio.SampleRate)
	taps := map[int]float64{0: 1}
	for range 300 {
		k := noise.IntN(length)
		taps[k] += 0.2 * noise.NormFloat64() * math.Pow(10, -3*float64(k)/float64(length))
	}
	gain := math.Pow(10, decibels/20)
	for k, tap := range taps {
		for i, x := range voice[:max(len(voice)-late-k, 0)] {
			out[i+late+k] += float32(gain*tap) * x
		}
	}
	return out
}

// TestRepeatedSpeechIsRemoved: the second channel loses the speech in which it
// repeats the first one, and keeps all its own speech, also during the echo.
func TestRepeatedSpeechIsRemoved(t *testing.T) {
	voices, turns := exchange(t)
	for name, c := range map[string]struct{ delay, decay, decibels float64 }{
		"line":        {0.002, 0.001, -20},
		"headset":     {0.03, 0.1, -25},
		"loudspeaker": {0.25, 0.4, -10},
		"no echo":     {0, 0.001, -200},
	} {
		t.Run(name, func(t *testing.T) {
			noise := rand.New(rand.NewPCG(1, 2))
			echo := echoed(voices[0], c.delay, c.decay, c.decibels, noise)
			channels := [2][]float32{}
			for i := range voices[0] {
				channels[0] = append(channels[0], voices[0][i]+float32(3e-4*noise.NormFloat64()))
				channels[1] = append(channels[1], voices[1][i]+echo[i]+float32(3e-4*noise.NormFloat64()))
			}
			all := []audio.Span{{Start: 0, End: len(voices[0])}}
			speech := []Side{{Speech: &Speech{Spans: turns[0]}}, {Speech: &Speech{Spans: all}}}
			repeated := echoes(t.Context(), []*audio.PCM{audio.FromSamples(channels[0]), audio.FromSamples(channels[1])}, speech)
			assert.Equal(t, turns[0], speech[0].Speech.Spans, "the source")
			shared := func(a []audio.Span, b []audio.Span) (seconds float64) {
				for _, x := range a {
					for _, y := range b {
						seconds += max(0, float64(min(x.End, y.End)-max(x.Start, y.Start))) / audio.SampleRate
					}
				}
				return seconds
			}
			said, heard := shared(turns[1], turns[1]), shared(turns[0], turns[0])
			assert.LessOrEqual(t, shared(repeated, turns[1]), 0.05*said, "own words")
			if name == "no echo" {
				assert.Empty(t, repeated)
			} else {
				assert.GreaterOrEqual(t, shared(repeated, turns[0]), 0.8*(heard-1), "repeated words")
			}
			assert.InDelta(t, shared(all, all), shared(speech[1].Speech.Spans, all)+shared(repeated, all), 1e-6, "nothing is lost")
		})
	}
}

// TestEqualChannels: if two channels have the same sound, the first one stays.
func TestEqualChannels(t *testing.T) {
	voices, turns := exchange(t)
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range voices[0] {
		voices[0][i] += float32(3e-4 * noise.NormFloat64())
	}
	speech := []Side{{Speech: &Speech{Spans: turns[0]}}, {Speech: &Speech{Spans: turns[0]}}, {Speech: &Speech{Spans: turns[1]}}}
	silence := audio.FromSamples(make([]float32, len(voices[0])))
	repeated := echoes(t.Context(), []*audio.PCM{audio.FromSamples(voices[0]), audio.FromSamples(voices[0]), silence}, speech)
	assert.Equal(t, turns[0], repeated)
	assert.Equal(t, turns[0], speech[0].Speech.Spans)
	assert.Empty(t, speech[1].Speech.Spans)
	assert.Equal(t, turns[1], speech[2].Speech.Spans, "silence repeats nobody")
	assert.Empty(t, echoes(t.Context(), []*audio.PCM{audio.FromSamples(nil), audio.FromSamples(nil)}, nil))
}
