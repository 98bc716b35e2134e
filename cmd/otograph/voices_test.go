package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models/demo"
)

// TestVoiceOfACutRecording: a voice is computed from the part that exists, a
// message reports the missing part, and the recording is read once.
func TestVoiceOfACutRecording(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	pcm, err := audio.Open(t.Context(), audio.File("../../testdata/demo/short/en_05.flac"), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	var sound []byte
	for _, s := range pcm.Samples(0, pcm.Len()) {
		sound = binary.LittleEndian.AppendUint16(sound, uint16(int16(s*32767)))
	}
	p, err := otograph.Open(demo.Models())
	require.NoError(t, err)
	defer p.Close()
	for name, missing := range map[string]int{"whole.wav": 0, "cut.wav": 32000} {
		recording := bytes.NewReader(append(wavHead(len(sound)+missing), sound...))
		said := outputOf(t, &os.Stderr, func() {
			vector, err := oneVoice(t.Context(), p, audio.Reader(recording, filepath.Join("calls", name)))
			require.NoError(t, err)
			assert.NotEmpty(t, vector)
		})
		if missing == 0 {
			assert.Empty(t, said)
		} else {
			assert.Contains(t, said, "cut.wav: the recording is cut or damaged")
		}
	}
}

// wavHead returns the header of a WAV file at 16 kHz with size bytes of sound.
func wavHead(size int) []byte {
	head := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, uint32(36+size))...)
	head = append(head, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data"...)
	return binary.LittleEndian.AppendUint32(head, uint32(size))
}

// outputOf returns what f writes to a standard output.
func outputOf(t *testing.T, stream **os.File, f func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "output")
	require.NoError(t, err)
	defer file.Close()
	before := *stream
	*stream = file
	defer func() { *stream = before }()
	f()
	_, err = file.Seek(0, io.SeekStart)
	require.NoError(t, err)
	said, err := io.ReadAll(file)
	require.NoError(t, err)
	return string(said)
}

// TestVoiceOfACorrectedSpeaker: a speaker's voice is computed from the
// stretches in which, by the transcript, no other person speaks.
func TestVoiceOfACorrectedSpeaker(t *testing.T) {
	const recording = "../../testdata/demo/short/en_05.flac"
	transcript := filepath.Join(t.TempDir(), "corrected.json")
	write := func(text string) { require.NoError(t, os.WriteFile(transcript, []byte(text), 0o600)) }
	write(`{"audio_duration":3,"audio_md5":"","segments":[],"diarize_segments":[{"start":0,"end":1,"speaker":"SPEAKER_0"},{"start":0.5,"end":1.5,"speaker":"SPEAKER_1"},{"start":1.25,"end":2,"speaker":"SPEAKER_0"}]}`)
	for speaker, seconds := range map[string]float64{"SPEAKER_0": 1, "SPEAKER_1": 0.25} {
		src, err := speakerOf(t.Context(), recording, transcript, speaker)
		require.NoError(t, err)
		pcm, err := audio.Open(t.Context(), src, audio.Options{})
		require.NoError(t, err)
		assert.InDelta(t, seconds, pcm.Duration(), 1e-4, speaker)
		require.NoError(t, pcm.Close())
	}
	_, err := speakerOf(t.Context(), recording, transcript, "SPEAKER_2")
	require.ErrorContains(t, err, "found those of SPEAKER_0, SPEAKER_1")
	write(`{"audio_md5":"00000000000000000000000000000000"}`)
	_, err = speakerOf(t.Context(), recording, transcript, "SPEAKER_0")
	require.ErrorContains(t, err, "found that of another recording")
	write(`[]`)
	_, err = speakerOf(t.Context(), recording, transcript, "SPEAKER_0")
	require.ErrorContains(t, err, "expected a result as JSON")
}
