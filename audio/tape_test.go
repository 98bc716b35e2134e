package audio

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTapeKeepsPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		x := make([]float32, rapid.IntRange(0, 5*SampleRate).Draw(t, "length"))
		for i := range x {
			x[i] = 2*r.Float32() - 1
		}
		var tape Tape
		forgotten := 0
		for at := 0; at < len(x); {
			n := min(rapid.IntRange(1, SampleRate).Draw(t, "piece"), len(x)-at)
			tape.Append(x[at : at+n])
			at += n
			if r.IntN(3) == 0 {
				forgotten = max(forgotten, r.IntN(at+1))
				tape.Forget(forgotten)
			}
			require.Equal(t, at, tape.Len())
			from := forgotten + r.IntN(at-forgotten+1)
			section := tape.Section(from, at)
			require.Equal(t, at, section.Len())
			require.Equal(t, x[from:at], section.Samples(0, at))
			require.Equal(t, x[from:at], append([]float32{}, section.Samples(from, at+5)...))
			require.LessOrEqual(t, len(tape.blocks), (at-forgotten)/blockSamples+2, "forgotten samples are freed")
		}
	})
}

func TestTapeLimitsSamples(t *testing.T) {
	var tape Tape
	tape.Append([]float32{2, -3, float32(math.NaN()), 0.5})
	assert.Equal(t, []float32{1, -1, 0, 0.5}, tape.Samples(0, 4))
}

func TestRecorderReturnsTheRecording(t *testing.T) {
	r, err := NewRecorder(t.TempDir())
	require.NoError(t, err)
	x := make([]float32, 3*recorderBuffer/2)
	for i := range x {
		x[i] = float32(i%100) / 100
	}
	require.NoError(t, r.Write(x[:10]))
	require.NoError(t, r.Write(x[10:]))
	p, err := r.PCM()
	require.NoError(t, err)
	assert.Equal(t, len(x), p.Len())
	assert.InDelta(t, p.Duration(), p.Info().Duration, 1e-9)
	assert.Equal(t, x, append([]float32{}, p.Samples(0, len(x))...))
	require.NoError(t, p.Close())
}

// However bytes are split, a feed returns the samples that one call returns, in
// every encoding of the sound.
func TestFeed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, encoding := range slices.Sorted(maps.Keys(feedEncodings)) {
		for _, rate := range []int{8000, 16000, 44100, 48000} {
			for _, channels := range []int{1, 2} {
				all := make([]byte, 4*channels*rate/10)
				for i := range all {
					all[i] = byte(r.IntN(256))
				}
				whole, err := NewFeed(encoding, rate, channels)
				require.NoError(t, err)
				want := whole.Flush(whole.Convert(nil, all))
				assert.InDelta(t, len(all)/whole.width/channels*SampleRate/rate, len(want), 1)
				parts, err := NewFeed(encoding, rate, channels)
				require.NoError(t, err)
				var got []float32
				for at := 0; at < len(all); {
					n := min(1+r.IntN(700), len(all)-at)
					got = parts.Convert(got, all[at:at+n])
					at += n
				}
				assert.Equal(t, want, parts.Flush(got), "%s %d %d", encoding, rate, channels)
			}
		}
	}
	for _, bad := range []struct {
		encoding       string
		rate, channels int
		want           string
	}{
		{"opus", 16000, 1, "expected one of [s16le f32le mulaw alaw]"}, {"s16le", 0, 1, "sample rate 0 Hz: expected 4000"}, {"s16le", 16000, 0, "0 channels"},
	} {
		_, err := NewFeed(bad.encoding, bad.rate, bad.channels)
		assert.ErrorContains(t, err, bad.want)
	}
}

// Quiet speech gets louder, loud speech keeps its level, and the first loud
// window after silence is not louder than full scale.
func TestRisingLevel(t *testing.T) {
	const window = 512
	tone := func(level float64) []float32 {
		x := make([]float32, window)
		for i := range x {
			x[i] = float32(level * math.Sin(float64(i)*0.3))
		}
		return x
	}
	rms := func(x []float32) float64 {
		sum := 0.0
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		return math.Sqrt(sum / float64(len(x)))
	}
	l := NewRisingLevel(window)
	var out []float32
	for range 12 * SampleRate / window { // quiet for twelve seconds
		out = l.Raise(out[:0], tone(0.001))
	}
	assert.InDelta(t, leveledAt, rms(out), 0.01)
	out = l.Raise(out[:0], tone(0.3))
	assert.Less(t, rms(out), 0.5, "the gain falls with the first loud window")
	for range 20 {
		out = l.Raise(out[:0], tone(0.3))
	}
	assert.Equal(t, tone(0.3), out)
	first := NewRisingLevel(window).Raise(nil, tone(0.0001))
	assert.Less(t, rms(first), 0.001, "the noise before the first word stays low")
}
