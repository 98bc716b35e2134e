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

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/web"
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
	pcm, err := audio.Open(t.Context(), audio.File(recording), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	opus, err := encodeOpus(t.Context(), pcm)
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(opus, []byte("OggS")))
	assert.Contains(t, string(opus[:64]), "OpusHead")
	got, err := audio.Open(t.Context(), audio.Reader(bytes.NewReader(opus), "embedded.ogg"), audio.Options{})
	require.NoError(t, err)
	defer got.Close()
	assert.InDelta(t, pcm.Duration(), got.Duration(), 0.02)
}

func TestPeaks(t *testing.T) {
	samples := make([]float32, 10*audio.SampleRate)
	for i := range samples[:audio.SampleRate] { // a second of a negative half, then silence
		samples[i] = -0.5
	}
	samples[5*audio.SampleRate+3] = 0.25
	got := peaks(audio.FromSamples(samples))
	require.Len(t, got, 10*peaksPerSecond)
	want := make([]byte, len(got))
	for i := range peaksPerSecond {
		want[i] = 255
	}
	want[5*peaksPerSecond] = 128
	assert.Equal(t, want, got)
	assert.Equal(t, make([]byte, 50), peaks(audio.FromSamples(make([]float32, audio.SampleRate))), "silence")
	assert.Equal(t, []byte{255}, peaks(audio.FromSamples([]float32{1})), "a recording shorter than a stretch")
}

// Every page has its waveform, that of standard input has the band of the speech.
func TestWriteHTML(t *testing.T) {
	if !web.Built() {
		t.Skip("the page is not built: make build where npm is installed")
	}
	var page bytes.Buffer
	c := &transcribeCmd{Format: "html"}
	require.NoError(t, c.writeHTML(t.Context(), &page, "../../testdata/conversation.flac", "conversation.flac", &otograph.Result{}))
	assert.Contains(t, page.String(), `"peaks":"`)
	page.Reset()
	require.NoError(t, c.writeHTML(t.Context(), &page, "-", "standard input", &otograph.Result{}))
	assert.NotContains(t, page.String(), `"peaks":"`)
	assert.ErrorContains(t, c.writeHTML(t.Context(), &page, "html.go", "html.go", &otograph.Result{}), "html.go: decoding it again")
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
