package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

func TestSampleReader(t *testing.T) {
	samples := []float32{0, 1, -0.5, 0.25, 1e-9}
	for _, size := range []int{4, 5, 12, 4096} {
		r := &sampleReader{pcm: audio.FromSamples(samples)}
		var got []byte
		buf := make([]byte, size)
		for {
			n, err := r.Read(buf)
			got = append(got, buf[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		require.Len(t, got, 4*len(samples))
		for i, s := range samples {
			assert.Equal(t, s, math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])))
		}
	}
	_, err := (&sampleReader{pcm: audio.FromSamples(samples)}).Read(make([]byte, 3))
	assert.ErrorIs(t, err, io.ErrShortBuffer)
}

// The embedded audio lasts as long as the recording, so that the times fit.
func TestEncodeOpus(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed")
	}
	const recording = "../../testdata/conversation.flac"
	opus, err := encodeOpus(t.Context(), recording)
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(opus, []byte("OggS")))
	assert.Contains(t, string(opus[:64]), "OpusHead")
	was, err := audio.Probe(t.Context(), audio.File(recording), audio.Options{})
	require.NoError(t, err)
	got, err := audio.Open(t.Context(), audio.Reader(bytes.NewReader(opus), "embedded.ogg"), audio.Options{})
	require.NoError(t, err)
	defer got.Close()
	assert.InDelta(t, was.Duration, got.Duration(), 0.02)
	_, err = encodeOpus(t.Context(), "html.go")
	assert.Error(t, err, "a text is no recording")
}

func TestCheckHTML(t *testing.T) {
	for name, c := range map[string]transcribeCmd{
		"another format": {Format: "srt", EmbedAudio: true},
		"standard input": {Format: "html", EmbedAudio: true, Files: []string{"-"}},
	} {
		var usage *usageError
		assert.ErrorAs(t, c.checkHTML(c.Files), &usage, name)
	}
	assert.NoError(t, (&transcribeCmd{Format: "json"}).checkHTML([]string{"-"}))
}
