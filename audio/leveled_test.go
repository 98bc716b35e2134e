package audio

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// loudness returns the root mean square of samples, in dB of full scale.
func loudness(x []float32) float64 {
	energy := 0.0
	for _, v := range x {
		energy += float64(v) * float64(v)
	}
	return 10 * math.Log10(energy/float64(len(x)))
}

func TestQuietRecordingsAreAmplified(t *testing.T) {
	const second = SampleRate
	quiet := func(seconds int, level float32) *PCM { return FromSamples(noise(seconds*second, level, 1)) }

	t.Run("a loud recording stays as it is", func(t *testing.T) {
		p := quiet(30, 0.5)
		assert.Same(t, p, p.Leveled())
	})
	t.Run("a quiet recording is raised", func(t *testing.T) {
		p := quiet(30, 0.01)
		l := p.Leveled()
		assert.Equal(t, p.Len(), l.Len())
		assert.InDelta(t, -20, loudness(l.Samples(10*second, 20*second)), 0.3)
		assert.InDelta(t, -20, loudness(l.Samples(0, second)), 0.3)
		assert.InDelta(t, -20, loudness(l.Samples(29*second, 30*second)), 0.3)
	})
	t.Run("by 50 dB at most", func(t *testing.T) {
		p := quiet(30, 1e-5)
		assert.InDelta(t, 50, loudness(p.Leveled().Samples(0, 30*second))-loudness(p.Samples(0, 30*second)), 0.1)
	})
	t.Run("a view is the same wherever it begins", func(t *testing.T) {
		l := quiet(5, 0.01).Leveled()
		all := l.Samples(0, 5*second)
		assert.Len(t, all, 5*second)
		assert.Equal(t, all[1000:40000], l.Samples(1000, 40000))
		assert.Empty(t, l.Samples(5*second, 6*second))
	})
	t.Run("speech within ten seconds keeps a pause quiet", func(t *testing.T) {
		x := append(noise(30*second, 0.001, 1), noise(2*second, 0.5, 2)...)
		l := FromSamples(x).Leveled()
		assert.Equal(t, x[24*second:], l.Samples(24*second, 32*second), "not raised beside it")
		assert.Greater(t, loudness(l.Samples(0, second)), -25.0, "raised far from it")
	})
	t.Run("nothing exceeds full scale", func(t *testing.T) {
		x := noise(20*second, 0.001, 1)
		x[5*second] = 0.9
		for _, v := range FromSamples(x).Leveled().Samples(0, 20*second) {
			assert.LessOrEqual(t, max(v, -v), float32(1))
		}
	})
	t.Run("nothing is nothing", func(t *testing.T) {
		assert.Empty(t, FromSamples(nil).Leveled().Samples(0, 100))
		assert.Zero(t, FromSamples(make([]float32, 1000)).Leveled().Samples(0, 1000)[500])
	})
}
