package audio

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// The fast path for a block of floats returns the same as the slow path for
// each of them, in both byte orders.
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
		assert.Equal(t, wantBad, fromF32LE(got, little))
		assert.Equal(t, want, got)
		assert.Equal(t, wantBad, fromF32BE(got, big))
		assert.Equal(t, want, got)
	})
}
