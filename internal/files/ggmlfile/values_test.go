package ggmlfile

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// TestHalfPrecisionRounding rounds every 16-bit float, the point halfway to the
// next one, and the neighbors of that point.
func TestHalfPrecisionRounding(t *testing.T) {
	for h := range uint16(0x7c00) {
		at := onnxfile.Half(h)
		require.Equal(t, h, Half(at))
		require.Equal(t, h|0x8000, Half(-at))
		if h == 0x7bff {
			break
		}
		even := h + h&1
		middle := (at + onnxfile.Half(h+1)) / 2
		require.Equal(t, even, Half(middle), "halfway between %g and the next", at)
		require.Equal(t, h, Half(math.Nextafter32(middle, 0)))
		require.Equal(t, h+1, Half(math.Nextafter32(middle, 1e9)))
	}
	assert.Equal(t, uint16(0x7bff), Half(65520), "no number becomes infinite")
	assert.Equal(t, uint16(0xfbff), Half(float32(math.Inf(-1))))
	assert.True(t, math.IsNaN(float64(onnxfile.Half(Half(float32(math.NaN()))))))
}

// TestQ8_0RoundsToEven uses numpy's example: 0.5 and 1.5 steps round to the
// even number.
func TestQ8_0RoundsToEven(t *testing.T) {
	row := make([]float32, Block)
	row[0], row[1], row[2], row[3], row[4] = 127, 0.5, 1.5, -2.5, -127
	got := AppendValues(nil, row, tensorQ8_0)
	require.Len(t, got, 34)
	assert.Equal(t, []byte{0, 0x3c, 127, 0, 2, 0xfe, 0x81, 0}, got[:8])
	assert.Equal(t, make([]byte, 34), AppendValues(nil, make([]float32, Block), tensorQ8_0))
}

// TestWriter writes a file that Check accepts.
func TestWriter(t *testing.T) {
	h := Header{
		Vocabulary: 51865, AudioContext: 1500, AudioState: 64, AudioHeads: 1, AudioLayers: 1,
		TextContext: 448, TextState: 64, TextHeads: 1, TextLayers: 1, Mels: 80, Type: 2007,
	}
	var b bytes.Buffer
	w := NewWriter(&b, h, make([]float32, 80*201), [][]byte{[]byte("a"), nil, []byte("bc")})
	w.Tensor("one", []int32{64, 2}, tensorQ8_0)
	w.Values(make([]float32, 64), tensorQ8_0)
	w.Values(make([]float32, 64), tensorQ8_0)
	w.Tensor("two", []int32{3}, TensorF32)
	w.Values([]float32{1, 2, 3}, TensorF32)
	require.NoError(t, w.Err())
	got, err := Check(bytes.NewReader(b.Bytes()), int64(b.Len()), false)
	require.NoError(t, err)
	assert.Equal(t, h, got.Header)
	require.Len(t, got.Index, 2)
	assert.Equal(t, []any{"one", []int32{64, 2}, "two", []int32{3}}, []any{got.Index[0].Name, got.Index[0].Dims, got.Index[1].Name, got.Index[1].Dims})
	assert.Len(t, got.Texts, 3)
}
