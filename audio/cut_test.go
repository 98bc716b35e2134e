package audio

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// ffmpegFile has ffmpeg write a file: name ends with the container's extension,
// args go between the program and the name.
func ffmpegFile(t testing.TB, name string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	args = append(append([]string{"-hide_banner", "-nostdin", "-v", "error", "-y"}, args...), path)
	out, err := exec.Command("ffmpeg", args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
	return path
}

// TestCutFilesAreReported cuts recordings of the usual formats at random
// places: each part is rejected or marked as truncated; the whole is not. The
// short form has one recording of each codec, cut once before its end and once
// in the middle; TestAnyCutIsNoticed checks the containers.
func TestCutFilesAreReported(t *testing.T) {
	needFFmpeg(t)
	source := []string{"-f", "lavfi", "-i", "aevalsrc=0.3*sin(2000*t*t):s=22050:d=3"}
	for name, args := range map[string][]string{
		"a.wav": nil, "adpcm.wav": {"-c:a", "adpcm_ima_wav"}, "a.flac": nil, "a.ogg": {"-c:a", "libvorbis"}, "a.opus": {"-c:a", "libopus"},
		"a.mp3": nil, "vbr.mp3": {"-q:a", "5"}, "tagged.mp3": {"-metadata", "title=x", "-write_id3v1", "1"}, "plain.mp3": {"-write_xing", "0"},
		"a.m4a": nil, "first.m4a": {"-movflags", "+faststart"}, "a.mka": {"-c:a", "libopus"}, "a.webm": {"-c:a", "libopus"},
		"a.wma": nil, "a.aiff": nil, "a.au": nil, "a.caf": nil, "alac.caf": {"-ar", "11025", "-c:a", "alac"}, "a.w64": nil, "a.avi": {"-c:a", "mp3"}, "a.aac": nil, "a.flv": {"-c:a", "mp3"},
	} {
		if testing.Short() && slices.Contains([]string{"first.m4a", "vbr.mp3", "a.mka", "a.aiff", "a.au", "a.caf", "a.w64", "a.avi", "a.flv"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			whole, err := os.ReadFile(ffmpegFile(t, name, append(source, args...)...))
			require.NoError(t, err)
			open := func(data []byte) (Info, error) {
				pcm, err := Open(t.Context(), Reader(bytes.NewReader(data), name), Options{MinBytes: -1})
				if err != nil {
					return Info{}, err
				}
				defer pcm.Close()
				return pcm.Info(), nil
			}
			info, err := open(whole)
			require.NoError(t, err)
			assert.False(t, info.Truncated, "the whole")
			probed, err := Probe(t.Context(), Reader(bytes.NewReader(whole), name), Options{})
			require.NoError(t, err)
			assert.False(t, probed.Truncated, "the whole, probed")
			random := rand.New(rand.NewPCG(1, uint64(len(whole))))
			cuts := []int{len(whole) - 1, len(whole) - 2, len(whole) / 2}
			if name == "tagged.mp3" { // the tag at the end is no sound
				cuts = []int{len(whole) - 129}
			}
			if testing.Short() {
				cuts = slices.Delete(cuts, 0, len(cuts)/2)
			}
			for i := 0; i < 2 && !testing.Short(); i++ {
				cuts = append(cuts, 64+random.IntN(len(whole)-256))
			}
			undeclared := name == "plain.mp3" || name == "a.aac"
			for _, n := range cuts {
				info, err := open(whole[:n])
				if err != nil {
					assert.True(t, spec.IsPermanent(err), "%d of %d: %v", n, len(whole), err)
					continue
				}
				frames := undeclared && n < len(whole)-2 && frameBorder(whole, n, sniffed(t, whole))
				assert.Equal(t, !frames, info.Truncated, "%d of %d bytes: %.3f s", n, len(whole), info.Duration)
			}
		})
	}
}

// frameBorder reports whether a frame or packet begins at an offset: a file
// without a declared length that is cut there looks complete.
func frameBorder(b []byte, at int, c container) bool {
	size, _ := framesOf(c, b)(b[at:])
	return size > 0
}

func sniffed(t *testing.T, b []byte) container {
	c, err := sniff(bytes.NewReader(b))
	require.NoError(t, err)
	return c
}

// TestAnyCutIsNoticed cuts recordings whose format declares a length at each
// byte after their headers, and others at 10,000 places: the structure alone
// shows the cut, except between two frames of a format without a length. The
// short form has every seventh place.
func TestAnyCutIsNoticed(t *testing.T) {
	needFFmpeg(t)
	source := []string{"-f", "lavfi", "-i", "aevalsrc=0.3*sin(2000*t*t):s=22050:d=2"}
	film := []string{"-f", "lavfi", "-i", "testsrc=s=64x48:r=25:d=2", "-c:a", "mp2"}
	for name, args := range map[string][]string{
		"a.wav": nil, "a.ogg": {"-c:a", "libvorbis"}, "a.opus": {"-c:a", "libopus"}, "a.mp3": nil, "a.m4a": nil, "first.m4a": {"-movflags", "+faststart"},
		"a.mka": {"-c:a", "libopus"}, "a.webm": {"-c:a", "libopus"}, "a.wma": nil, "a.aiff": nil, "a.au": nil, "a.caf": nil, "a.w64": nil, "a.flv": {"-c:a", "mp3"},
		"plain.mp3": {"-write_xing", "0"}, "a.aac": nil, "a.mpg": nil, "film.mpg": film, "a.ts": nil, "film.ts": film, "film.m2ts": film, "a.dts": {"-strict", "-2", "-ar", "48000"},
	} {
		t.Run(name, func(t *testing.T) {
			whole, err := os.ReadFile(ffmpegFile(t, name, append(source, args...)...))
			require.NoError(t, err)
			c := sniffed(t, whole)
			undeclared := slices.Contains([]string{"plain.mp3", "a.aac", "a.mpg", "film.mpg", "a.ts", "film.ts", "film.m2ts", "a.dts"}, name)
			cut := func(n int) bool {
				short, err := cutShort(bytes.NewReader(whole[:n]), int64(n), c)
				if err != nil { // testify takes longer
					require.NoError(t, err)
				}
				return short
			}
			assert.False(t, cut(len(whole)))
			var missed []int
			begin, step := sniffWindow/32, 1
			if undeclared { // after four frames
				begin, step = sniffWindow/8, 1+len(whole)/10000
			}
			if testing.Short() {
				step *= 7
			}
			for n := begin; n < len(whole); n += step {
				index := c.name == "mp4" && bytes.HasPrefix(whole[min(n+4, len(whole)):], []byte("moov"))
				if !cut(n) && !index && !(undeclared && frameBorder(whole, n, c)) { // nothing can be decoded before it
					missed = append(missed, n)
				}
			}
			assert.Empty(t, missed, "of %d bytes", len(whole))
		})
	}
}

// TestCutAMR cuts recordings in AMR inside a frame of 20 ms, which ffmpeg
// reports.
func TestCutAMR(t *testing.T) {
	needFFmpeg(t)
	for _, name := range []string{"amr_nb_8k.amr", "amr_wb_16k.awb"} {
		whole, err := os.ReadFile(filepath.Join("testdata/formats", name))
		require.NoError(t, err)
		for n, want := range map[int]bool{len(whole): false, len(whole) - 1: true, len(whole) - 2: true} {
			pcm, err := Open(t.Context(), Reader(bytes.NewReader(whole[:n]), name), Options{})
			require.NoError(t, err)
			assert.Equal(t, want, pcm.Info().Truncated, "%s: %d of %d bytes", name, n, len(whole))
			pcm.Close()
		}
	}
}

// FuzzCut: no bytes make cutShort fail or read for long, and a file that is cut
// where its structure ends counts as whole.
func FuzzCut(f *testing.F) {
	entries, err := os.ReadDir("testdata/formats")
	require.NoError(f, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join("testdata/formats", e.Name()))
		require.NoError(f, err)
		f.Add(b[:min(len(b), 4096)])
	}
	f.Add([]byte("FLV\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := sniff(bytes.NewReader(b))
		if err != nil {
			return
		}
		end, err := structureEnd(bytes.NewReader(b), int64(len(b)), c)
		require.NoError(t, err)
		require.GreaterOrEqual(t, end, int64(0))
		short, err := cutShort(bytes.NewReader(b), int64(len(b)), c)
		require.NoError(t, err)
		require.Equal(t, end > int64(len(b)), short)
	})
}

// TestDSDIFF reads 0.1 s of one channel in one bit at 2.8224 MHz. Its chunks
// have sizes of 8 bytes.
func TestDSDIFF(t *testing.T) {
	needFFmpeg(t)
	chunk := func(id string, content ...[]byte) []byte {
		all := bytes.Join(content, nil)
		return append(binary.BigEndian.AppendUint64([]byte(id), uint64(len(all))), all...)
	}
	whole := chunk("FRM8", []byte("DSD "), chunk("FVER", []byte{1, 5, 0, 0}),
		chunk("PROP", []byte("SND "), chunk("FS  ", binary.BigEndian.AppendUint32(nil, 2822400)), chunk("CHNL", []byte("\x00\x01C000")),
			chunk("CMPR", []byte("DSD \x0enot compressed\x00"))),
		chunk("DSD ", bytes.Repeat([]byte{0x69}, 35280)))
	for n, want := range map[int]bool{len(whole): false, len(whole) - 1: true, len(whole) / 2: true} {
		pcm, err := Open(t.Context(), Reader(bytes.NewReader(whole[:n]), "a.dff"), Options{MinBytes: -1})
		require.NoError(t, err)
		assert.Equal(t, want, pcm.Info().Truncated, "%d of %d bytes", n, len(whole))
		assert.InDelta(t, 0.1*float64(n)/float64(len(whole)), pcm.Duration(), 0.002)
		pcm.Close()
	}
}
