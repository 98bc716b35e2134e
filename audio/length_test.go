package audio

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FLAC written to a pipe declares no length, so Probe counts the samples.
func TestFLACFromAPipe(t *testing.T) {
	needFFmpeg(t)
	bin, err := findFFmpeg(Options{})
	require.NoError(t, err)
	for _, args := range [][]string{
		{"-i", "sine=frequency=300:sample_rate=44100:duration=7.3"},
		{"-i", "anoisesrc=r=48000:duration=3.21:seed=4", "-ac", "2", "-frame_size", "1152"},
		{"-i", "anoisesrc=r=16000:duration=40:seed=5"},
	} {
		data, err := exec.Command(bin, append(append([]string{"-v", "error", "-nostdin", "-f", "lavfi"}, args...), "-f", "flac", "pipe:1")...).Output()
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "a.flac")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		pcm, err := Open(t.Context(), File(path), Options{})
		require.NoError(t, err)
		info, err := Probe(t.Context(), File(path), Options{})
		require.NoError(t, err)
		assert.InDelta(t, pcm.Duration(), info.Duration, 1.0/SampleRate)
		require.NoError(t, pcm.Close())
	}
}

// TestFLACNeedsNoDecoder: Probe reads a FLAC file's header without a decoder,
// unless no frame follows it.
func TestFLACNeedsNoDecoder(t *testing.T) {
	data, err := os.ReadFile("testdata/formats/no_extension")
	require.NoError(t, err)
	missing := Options{FFmpeg: "/nonexistent/ffmpeg", MinBytes: -1}
	tagged := slices.Concat([]byte("ID3\x04\x00\x00\x00\x00\x00\x05tags…"[:15]), data)
	for _, content := range [][]byte{data, tagged} {
		info, err := Probe(t.Context(), reader(content, "a"), missing)
		require.NoError(t, err)
		assert.Equal(t, Info{Duration: 3, Container: "flac", Codec: "flac", SampleRate: info.SampleRate, Channels: 1, Size: int64(len(content)), MD5: info.MD5}, info)
		assert.GreaterOrEqual(t, info.SampleRate, 8000)
	}
	frame := bytes.Index(data, []byte{0xff, 0xf8})
	require.Positive(t, frame)
	for _, cut := range []int{30, frame, frame + 1} {
		_, err = Probe(t.Context(), reader(data[:cut], "a"), missing)
		require.ErrorIs(t, err, ErrDecoderMissing, "%d bytes", cut)
	}
	_, err = Probe(t.Context(), reader(data, "a"), Options{FFmpeg: missing.FFmpeg, Track: 2})
	require.ErrorIs(t, err, ErrDecoderMissing)
}

// The declared length of an Ogg or MP3 file is trusted if the file is large
// enough for it. Otherwise the recording is counted.
func TestPlausibleLengthIsTrusted(t *testing.T) {
	needFFmpeg(t)
	data, err := os.ReadFile("testdata/formats/mp3_id3v24_id3v1_48k.mp3") // 3 s in its Xing header
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "a.mp3")
	at := bytes.Index(data, []byte("Info"))
	if at < 0 {
		at = bytes.Index(data, []byte("Xing"))
	}
	require.Positive(t, at)
	frames := binary.BigEndian.Uint32(data[at+8:])
	claim := func(factor uint32) error {
		binary.BigEndian.PutUint32(data[at+8:], frames*factor)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		pcm, err := Open(t.Context(), File(path), Options{MaxSeconds: 10})
		info, probeErr := Probe(t.Context(), File(path), Options{MaxSeconds: 10})
		assert.Equal(t, err == nil, probeErr == nil, "%v", probeErr)
		if err == nil {
			assert.InDelta(t, 3, pcm.Duration(), 0.1)
			assert.InDelta(t, 3, info.Duration, 0.1)
			assert.False(t, pcm.Info().Truncated)
			require.NoError(t, pcm.Close())
		}
		return err
	}
	require.NoError(t, claim(1))
	err = claim(5)
	require.ErrorIs(t, err, ErrTooLong)
	require.ErrorContains(t, err, "expected at most 10 s")
	require.NoError(t, claim(100), "5 minutes in 18 kB: not plausible")
}

// TestFLACOfSixHours: a header that counts 6 h in a file of 3 s is not used,
// and the file counts as cut.
func TestFLACOfSixHours(t *testing.T) {
	needFFmpeg(t)
	path := ffmpegFile(t, "a.flac", "-f", "lavfi", "-i", "sine=d=3:r=16000")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	binary.BigEndian.PutUint32(data[22:], 6*3600*SampleRate) // the low bits of the number of samples in STREAMINFO
	require.NoError(t, os.WriteFile(path, data, 0o600))
	pcm, err := Open(t.Context(), File(path), Options{})
	require.NoError(t, err)
	defer pcm.Close()
	info, err := Probe(t.Context(), File(path), Options{})
	require.NoError(t, err)
	assert.InDeltaSlice(t, []float64{3, 3}, []float64{pcm.Duration(), info.Duration}, 0.01)
	assert.Equal(t, []bool{true, true}, []bool{pcm.Info().Truncated, info.Truncated})
}

// TestCompressedDataChunks: ffmpeg reads one of two data chunks of ADPCM in a
// WAV file, so a part is missing.
func TestCompressedDataChunks(t *testing.T) {
	needFFmpeg(t)
	path := ffmpegFile(t, "a.wav", "-f", "lavfi", "-i", "sine=d=3:r=16000", "-c:a", "adpcm_ms")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	samples := data[bytes.Index(data, []byte("data")):]
	for _, content := range [][]byte{data, append(bytes.Clone(data), samples...)} {
		pcm, err := Open(t.Context(), reader(content, "a.wav"), Options{})
		require.NoError(t, err)
		defer pcm.Close()
		info, err := Probe(t.Context(), reader(content, "a.wav"), Options{})
		require.NoError(t, err)
		several := len(content) > len(data)
		assert.Equal(t, []bool{several, several}, []bool{pcm.Info().Truncated, info.Truncated})
	}
}
