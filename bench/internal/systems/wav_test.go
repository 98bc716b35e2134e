package systems

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-audio/wav"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

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
	require.NoError(t, WriteWAV(path, samples))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	got, err := wav.NewDecoder(f).FullPCMBuffer()
	require.NoError(t, err)
	assert.Equal(t, want, got.Data)
	assert.Equal(t, audio.SampleRate, got.Format.SampleRate)
}
