package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-audio/wav"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// Synthetic speech is unchanged after writing and reading, for whole seconds
// and a remainder.
func TestWriteWAV(t *testing.T) {
	samples := make([]float32, 2*audio.SampleRate+321)
	for i := range samples {
		samples[i] = float32(i%2001)/1000 - 1
	}
	path := filepath.Join(t.TempDir(), "speech.wav")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, writeWAV(f, samples))
	require.NoError(t, f.Close())

	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	assert.InDeltaSlice(t, samples, pcm.Samples(0, pcm.Len()), 1e-9)

	f, err = os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	d := wav.NewDecoder(f)
	require.NoError(t, d.FwdToPCM())
	assert.Equal(t, int64(4*len(samples)), d.PCMLen())
}
