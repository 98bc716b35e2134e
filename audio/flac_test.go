package audio

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// silentFLAC returns the given number of frames of 4608 silent samples at 16
// kHz, numbered from first, as an encoder writes them to a pipe: without the
// length in the header.
func silentFLAC(first, frames int) []byte {
	b := append([]byte("fLaC"), 0x80, 0, 0, 34)
	info := make([]byte, 34)
	binary.BigEndian.PutUint16(info, 4608)
	binary.BigEndian.PutUint16(info[2:], 4608)
	binary.BigEndian.PutUint64(info[10:], 16000<<44|15<<36) // one channel of 16 bits
	b = append(b, info...)
	for i := first; i < first+frames; i++ {
		b = append(b, silentFrame(i)...)
	}
	return b
}

func silentFrame(number int) []byte {
	b := []byte{0xff, 0xf8, 5<<4 | 5, 4 << 1}
	switch { // as in UTF-8
	case number < 1<<7:
		b = append(b, byte(number))
	case number < 1<<11:
		b = append(b, 0xc0|byte(number>>6), 0x80|byte(number&63))
	case number < 1<<16:
		b = append(b, 0xe0|byte(number>>12), 0x80|byte(number>>6&63), 0x80|byte(number&63))
	default:
		b = append(b, 0xf0|byte(number>>18), 0x80|byte(number>>12&63), 0x80|byte(number>>6&63), 0x80|byte(number&63))
	}
	b = append(b, byte(checksum(0x07, 8, b)))
	b = append(b, 0, 0, 0) // a constant of 0
	return binary.BigEndian.AppendUint16(b, uint16(checksum(0x8005, 16, b)))
}

func TestFLACWithoutLength(t *testing.T) {
	const frame = 4608.0 / 16000
	cut := silentFLAC(0, 20)
	tests := []struct {
		name string
		data []byte
		want float64
	}{
		{"one frame", silentFLAC(0, 1), frame},
		{"six hours", silentFLAC(0, 75000), 75000 * frame},
		{"joined late", silentFLAC(9000, 200), 200 * frame},
		{"behind an ID3 tag", append(id3(500), silentFLAC(0, 20)...), 20 * frame},
		{"before an ID3 tag", append(silentFLAC(0, 20), append([]byte("TAG"), make([]byte, 125)...)...), 20 * frame},
		{"cut off in a frame", cut[:len(cut)-5], 19 * frame},
		{"no frame", silentFLAC(0, 0), 0},
		{"another format", []byte("RIFF\x00\x00\x00\x00WAVE"), 0},
		{"empty", nil, 0},
		{"numbers fall", append(silentFLAC(9, 1), silentFrame(3)...), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := flacSeconds(bytes.NewReader(tt.data), int64(len(tt.data)))
			require.NoError(t, err)
			assert.InDelta(t, tt.want, got, 1e-9)
		})
	}
}

// A FLAC file whose last frame shows that it is too long is rejected before a
// decoder runs: this test has none.
func TestTooLongFLACIsNotDecoded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "six hours.flac")
	require.NoError(t, os.WriteFile(path, silentFLAC(0, 75000), 0o600))
	_, err := Open(t.Context(), File(path), Options{FFmpeg: "/nonexistent/ffmpeg"})
	require.ErrorIs(t, err, ErrTooLong)
	assert.ErrorContains(t, err, "21600.0 s, expected at most 18000 s")
	_, err = Open(t.Context(), File(path), Options{FFmpeg: "/nonexistent/ffmpeg", MaxSeconds: 7 * 3600})
	require.ErrorIs(t, err, ErrDecoderMissing)
}

// FLAC written to a pipe by ffmpeg gets the same length as from ffmpeg's
// decoder.
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
		seconds, err := flacSeconds(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		assert.InDelta(t, pcm.Duration(), seconds, 1.0/SampleRate)
		info, err := Probe(t.Context(), File(path), Options{})
		require.NoError(t, err)
		assert.Equal(t, seconds, info.Duration)
		require.NoError(t, pcm.Close())
	}
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
		if err == nil {
			assert.InDelta(t, 3, pcm.Duration(), 0.1)
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

func FuzzFLACSeconds(f *testing.F) {
	f.Add(silentFLAC(0, 3))
	f.Add(silentFLAC(70000, 2))
	f.Add(append(id3(20), silentFLAC(0, 1)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		seconds, err := flacSeconds(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		require.GreaterOrEqual(t, seconds, 0.0)
	})
}
