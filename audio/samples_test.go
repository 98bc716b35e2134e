package audio

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The fast path for a block of floats returns the same as the slow path for
// each float, in both byte orders.
// Bits of the magnitudes that clamp leaves unchanged: above 1e-20, up to 1.
const (
	plainAbove = 0x1e3ce509 // the first float32 above 1e-20
	plainUntil = 0x3f800000
)

func TestFloatsAreClamped(t *testing.T) {
	special := []uint32{0, 1 << 31, 1, plainAbove - 1, plainAbove, plainAbove + 1, plainUntil - 1, plainUntil, plainUntil + 1, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x007fffff, 0x00800000}
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(special), rapid.Uint32())).Draw(t, "bits")
		little, big := make([]byte, 4*len(bits)), make([]byte, 4*len(bits))
		want, wantBad := make([]float32, len(bits)), 0
		for i, b := range bits {
			binary.LittleEndian.PutUint32(little[4*i:], b)
			binary.BigEndian.PutUint32(big[4*i:], b)
			x := float64(math.Float32frombits(b))
			if math.IsNaN(x) || math.IsInf(x, 0) {
				wantBad++
				continue
			}
			want[i] = clamp(float32(x))
		}
		got := make([]float32, len(bits))
		assert.Equal(t, wantBad, fromF32(got, little))
		assert.Equal(t, want, got)
		assert.Equal(t, wantBad, convert(fromF32).swapped(4)(got, big))
		assert.Equal(t, want, got)
	})
}

// TestClampVectors compares converting eight samples at a time with converting
// single samples.
func TestClampVectors(t *testing.T) {
	odd := []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, 1.5, -3e38, 1e-20, -1e-21, 1e-45,
		math.Float32frombits(plainAbove), math.Float32frombits(plainAbove - 1), math.Float32frombits(plainUntil + 1),
	}
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	for n := range 700 {
		src := noise(n, 1.2, uint64(n))
		for i := range src {
			switch {
			case i%5 == 0:
				src[i] = odd[(i/5+n)%len(odd)]
			case n%3 == 0 && i%211 == n%211:
				src[i] = bad[n%len(bad)]
			}
		}
		want, faults := make([]float32, n), 0
		raw := make([]byte, 0, 4*n)
		for i, x := range src {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			want[i] = math.Float32frombits(clampBits(math.Float32bits(x), &faults))
		}
		got := make([]float32, n)
		require.Equal(t, faults, fromF32(got, raw), n)
		require.Equal(t, floatBits(want), floatBits(got), n)
	}
}

func floatBits(s []float32) []uint32 {
	out := make([]uint32, len(s))
	for i, x := range s {
		out[i] = math.Float32bits(x)
	}
	return out
}
