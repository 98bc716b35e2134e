package audio_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// TestChannelsAreKept checks that each channel equals a recording of that
// channel alone.
func TestChannelsAreKept(t *testing.T) {
	const rate, seconds = 44100, 2
	var both, left, right []float32
	for i := range rate * seconds {
		l := float32(0.5 * math.Sin(2*math.Pi*440*float64(i)/rate))
		r := float32(0.25 * math.Sin(2*math.Pi*1000*float64(i)/rate))
		left, right, both = append(left, l), append(right, r), append(both, l, r)
	}
	open := func(samples []float32, channels int, o audio.Options) *audio.PCM {
		pcm, err := audio.Open(t.Context(), audio.Raw(samples, rate, channels), o)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, pcm.Close()) })
		return pcm
	}
	all := func(p *audio.PCM) []float32 { return p.Samples(0, p.Len()) }

	kept := open(both, 2, audio.Options{KeepChannels: true})
	require.Len(t, kept.Channels(), 2)
	assert.Equal(t, all(open(left, 1, audio.Options{})), all(kept.Channels()[0]))
	assert.Equal(t, all(open(right, 1, audio.Options{})), all(kept.Channels()[1]))
	plain := open(both, 2, audio.Options{})
	assert.Equal(t, all(plain), all(kept), "the mix is unchanged")
	assert.Empty(t, plain.Channels(), "nobody asked")
	assert.Empty(t, open(left, 1, audio.Options{KeepChannels: true}).Channels(), "one channel is the mix")
	assert.Empty(t, open(make([]float32, 9*rate), 9, audio.Options{KeepChannels: true}).Channels(), "more than eight are not kept")
}
