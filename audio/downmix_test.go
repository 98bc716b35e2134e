package audio

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func noise(n int, level float32, seed uint64) []float32 {
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := make([]float32, n)
	for i := range s {
		s[i] = (rnd.Float32()*2 - 1) * level
	}
	return s
}

func scaled(s []float32, by float32) []float32 {
	out := make([]float32, len(s))
	for i, x := range s {
		out[i] = x * by
	}
	return out
}

func openRaw(t testing.TB, rate int, channels ...[]float32) []float32 {
	t.Helper()
	pcm, err := Open(t.Context(), Raw(interleave(channels...), rate, len(channels)), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { pcm.Close() })
	return pcm.Samples(0, pcm.Len())
}

func TestDownmix(t *testing.T) {
	const n = 3 * SampleRate
	a, b := noise(n, 0.5, 1), noise(n, 0.5, 2)
	silent := make([]float32, n)
	mean := make([]float32, n)
	for i := range mean {
		mean[i] = (a[i] + b[i]) / 2
	}
	near := func(t *testing.T, want, got []float32) {
		t.Helper()
		require.Len(t, got, len(want))
		for i := range want {
			if math.Abs(float64(want[i]-got[i])) > 1e-6 {
				t.Fatalf("sample %d: expected %v, got %v", i, want[i], got[i])
			}
		}
	}
	t.Run("unrelated channels: their mean", func(t *testing.T) { near(t, mean, openRaw(t, SampleRate, a, b)) })
	t.Run("equal channels", func(t *testing.T) { near(t, a, openRaw(t, SampleRate, a, a)) })
	t.Run("a silent channel does not lower the mix", func(t *testing.T) { near(t, a, openRaw(t, SampleRate, a, silent)) })
	t.Run("five silent channels of six", func(t *testing.T) {
		near(t, a, openRaw(t, SampleRate, silent, silent, a, silent, silent, silent))
	})
	t.Run("all silent", func(t *testing.T) { near(t, silent, openRaw(t, SampleRate, silent, silent)) })
	t.Run("antiphase: the first of two equally loud", func(t *testing.T) { near(t, a, openRaw(t, SampleRate, a, scaled(a, -1))) })
	t.Run("antiphase: the louder one", func(t *testing.T) {
		near(t, scaled(a, -1), openRaw(t, SampleRate, scaled(a, 0.8), scaled(a, -1)))
	})
	t.Run("antiphase around different constants", func(t *testing.T) {
		l, r := scaled(a, 0.5), scaled(a, -0.5)
		for i := range l {
			l[i] += 0.2
			r[i] += 0.3
		}
		near(t, l, openRaw(t, SampleRate, l, r))
	})
	t.Run("three channels, two of which cancel", func(t *testing.T) {
		got := openRaw(t, SampleRate, a, scaled(a, -1), b)
		assert.Greater(t, decibel(rms(got)/rms(b)), -10.0, "the third is still there")
	})
	t.Run("antiphase in the middle only", func(t *testing.T) {
		left, right := append(append(a[:n:n], a...), a...), append(append(b[:n:n], scaled(a, -1)...), b...)
		got := openRaw(t, SampleRate, left, right)
		near(t, mean[:n-SampleRate/2], got[:n-SampleRate/2])
		near(t, a[SampleRate:], got[n+SampleRate:2*n])
		near(t, mean[SampleRate:], got[2*n+SampleRate:])
		for i := 1; i < len(got); i++ { // noise of level 0.5 jumps by at most 1
			if math.Abs(float64(got[i]-got[i-1])) > 1.01 {
				t.Fatalf("a jump at sample %d", i)
			}
		}
	})
	t.Run("a channel that sets in later", func(t *testing.T) {
		right := append(silent[:n:n], b...)
		got := openRaw(t, SampleRate, append(a[:n:n], a...), right)
		near(t, a, got[:n])
		near(t, mean[SampleRate:], got[n+SampleRate:])
	})
}

// TestDownmixChunks checks that the result does not depend on the sizes of
// writes, and that 64 channels at the highest rate use bounded memory.
func TestDownmixChunks(t *testing.T) {
	l, r := noise(30011, 0.5, 3), noise(30011, 0.5, 4)
	copy(r[10000:20000], scaled(l[10000:20000], -1))
	src := interleave(l, r)
	run := func(cut int) (out []float32) {
		d := newDownmix(2, 8000, func(s []float32) error { out = append(out, s...); return nil })
		for rest := src; len(rest) > 0; {
			n := min(cut, len(rest))
			require.NoError(t, d.write(rest[:n]))
			rest = rest[n:]
		}
		require.NoError(t, d.flush())
		return out
	}
	want := run(len(src))
	require.Len(t, want, len(l))
	for _, cut := range []int{1, 7, 4000, 8001} {
		require.Equal(t, want, run(cut), cut)
	}
	assert.LessOrEqual(t, cap(newDownmix(maxChannels, maxWAVRate, nil).block), maxBlock)
}

// TestStereoVectors compares the vectorized loops for two channels with the
// portable ones: the mix to the last bit, the sums up to rounding.
func TestStereoVectors(t *testing.T) {
	for frames := range 70 {
		block := noise(2*frames, 1, uint64(frames))
		want, got := make([]float32, frames), make([]float32, frames)
		for _, w := range [][2]float32{{0.5, 0.5}, {1, 0}, {0.3, 0.7}} {
			mixStereoGo(want, block, w[0], w[1])
			mixStereo(got, block, w[0], w[1])
			require.Equal(t, want, got, frames)
		}
		exact := stereoSumsGo([5]float64{}, block)
		for i, sum := range stereoSums(block) {
			assert.InDelta(t, exact[i], sum, 1e-12, "sum %d of %d frames", i, frames)
		}
	}
}
