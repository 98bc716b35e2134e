package mediafiles

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-audio/wav"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWAVHeader(t *testing.T) {
	assert.Equal(t, "RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x08\x00\x00\x00",
		string(WAVHeader(16000, 8)))
	long := WAVHeader(16000, math.MaxUint32)
	assert.Equal(t, "\xff\xff\xff\xff", string(long[4:8]))
	assert.Equal(t, "\xff\xff\xff\xff", string(long[40:]))
}

func TestSamples16(t *testing.T) {
	assert.Equal(t, "\x00\x00\x00\x40\xff\xff\x00\x80\x00\x80\xff\x7f\xff\x7f", string(Samples16([]float32{0, 0.5, -1.0 / (1 << 15), -1, -2, 1, 2})))
}

// TestWriteWAV: samples of 16 bits are written as they are, louder ones are
// clipped.
func TestWriteWAV(t *testing.T) {
	var want []int
	var samples []float32
	for _, v := range []int{-32768, -32767, -1, 0, 1, 16384, 32766, 32767} {
		want, samples = append(want, v), append(samples, float32(v)/32768)
	}
	want, samples = append(want, 32767, -32768), append(samples, 1.5, -1.5)
	path := filepath.Join(t.TempDir(), "a.wav")
	require.NoError(t, WriteWAV(path, 16000, samples))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	got, err := wav.NewDecoder(f).FullPCMBuffer()
	require.NoError(t, err)
	assert.Equal(t, want, got.Data)
	assert.Equal(t, 16000, got.Format.SampleRate)
}
