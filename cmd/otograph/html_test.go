package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
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

// TestSampleReaderKeepsGaps: the embedded audio has silence in gaps without
// samples, so that it lasts as long as the recording.
func TestSampleReaderKeepsGaps(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("requires ffmpeg")
	}
	path := filepath.Join(t.TempDir(), "late.mkv")
	out, err := exec.Command("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=s=16x16:r=5:d=4", "-itsoffset", "2", "-f", "lavfi", "-i", "sine=d=2:r=16000",
		"-map", "0", "-map", "1", "-c:v", "mpeg4", "-c:a", "pcm_s16le", "-bsf:a", "noise=drop='between(n,4,9)'", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	require.Len(t, pcm.Timeline(), 2)
	var got bytes.Buffer
	_, err = io.CopyBuffer(&got, struct{ io.Reader }{&sampleReader{pcm: pcm}}, make([]byte, 4096))
	require.NoError(t, err)
	assert.InDelta(t, 4, float64(got.Len())/4/audio.SampleRate, 0.001)
	for i, zero := range map[float64]bool{1.9: true, 2.05: false, 2.4: true, 3.5: false} {
		at := int(i*audio.SampleRate) * 4
		assert.Equal(t, zero, !bytes.ContainsFunc(got.Bytes()[at:at+400], func(r rune) bool { return r != 0 }), "at %g s", i)
	}
}

// The embedded audio lasts as long as the recording, so that the times match.
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

// A page has the waveform of the run; the audio is decoded again.
func TestWriteHTML(t *testing.T) {
	if !web.Built() {
		t.Skip("the page is not built: make build where npm is installed")
	}
	var page bytes.Buffer
	c := &transcribeCmd{Format: "html"}
	require.NoError(t, c.writeHTML(t.Context(), &page, "-", "standard input", &otograph.Result{}, []byte{0, 255}))
	assert.Contains(t, page.String(), `"peaks":"AP8="`)
	page.Reset()
	cut := []otograph.Segment{{Start: 1, End: 2, Text: "I think"}, {ID: 1, Start: 2.9, End: 4, Text: "it is the oil."}}
	require.NoError(t, c.writeHTML(t.Context(), &page, "-", "standard input", &otograph.Result{Ran: spec.Capabilities{ASR: true}, Segments: cut}, nil))
	assert.Contains(t, page.String(), `"text":"I think it is the oil."`, "a sentence is one line")
	page.Reset()
	require.NoError(t, c.writeHTML(t.Context(), &page, "n\xf6ne.wav", "n\xf6ne.wav", &otograph.Result{}, nil))
	assert.True(t, utf8.Valid(page.Bytes()))
	assert.NotContains(t, page.String(), `"peaks":"`)
	c.EmbedAudio = true
	assert.ErrorContains(t, c.writeHTML(t.Context(), &page, "html.go", "html.go", &otograph.Result{}, nil), "html.go: decoding it again")
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
