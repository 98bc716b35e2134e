//go:build unix

package audio

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// TestNamesAreOnlyLabels checks that a name is only a label, never a path, an
// option, a pattern or an address, and that a file with such a name is read
// like any other. The names come from testdata/bad/manifest.jsonl.
func TestNamesAreOnlyLabels(t *testing.T) {
	needFFmpeg(t)
	wav, err := os.ReadFile("testdata/formats/UPPER.WAV")
	require.NoError(t, err)
	amr, err := os.ReadFile("testdata/formats/amr_nb_8k.amr") // for ffmpeg
	require.NoError(t, err)
	dir := t.TempDir()
	t.Chdir(dir)
	root, err := os.OpenRoot(dir) // some of these names are paths outside the folder, where nothing may be written
	require.NoError(t, err)
	defer root.Close()
	tested := 0
	manifest := readManifest[badCase]
	for _, c := range manifest(t, mustOwn("bad/manifest.jsonl")) {
		if c.File != nil || c.Symlink != "" || c.FIFO || c.Directory {
			continue
		}
		name, err := hex.DecodeString(c.NameHex)
		require.NoError(t, err)
		tested++
		contents := [][]byte{wav}
		if tested%4 == 0 {
			contents = append(contents, amr)
		}
		for _, content := range contents {
			pcm, err := Open(t.Context(), reader(content, string(name)), Options{})
			require.NoError(t, err, "a reader called %q", name)
			require.NoError(t, pcm.Close())
			_, err = Open(t.Context(), reader([]byte(strings.Repeat("no audio ", 200)), string(name)), Options{})
			require.ErrorIs(t, err, ErrUnsupported)
			for _, c := range err.Error() {
				require.True(t, c >= ' ' && c != 0x202e && c != 0xfffd, "an unescaped %U in %q", c, err)
			}
			path := string(name)
			if filepath.Base(path) != path || !filepath.IsLocal(path) || root.WriteFile(path, content, 0o600) != nil {
				continue // a path, or not a valid name on this file system
			}
			pcm, err = Open(t.Context(), File(path), Options{})
			require.NoError(t, err, "a file called %q", path)
			require.NoError(t, pcm.Close())
			require.NoError(t, os.Remove(path))
		}
	}
	assert.Greater(t, tested, 20)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// ownFolder is this package's folder, independent of later directory changes.
var ownFolder, _ = os.Getwd()

func mustOwn(path string) string { return filepath.Join(ownFolder, "testdata", path) }

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Symlink("/etc/passwd", at("link.wav")))
	require.NoError(t, os.Symlink(mustOwn("formats/UPPER.WAV"), at("good.wav")))
	require.NoError(t, syscall.Mkfifo(at("fifo.wav"), 0o600))
	require.NoError(t, os.Mkdir(at("folder.wav"), 0o700))
	for path, says := range map[string]string{
		at("link.wav"): "its content is not that of an audio or video file", at("fifo.wav"): "a named pipe", at("folder.wav"): "a folder", "/dev/zero": "a device",
	} {
		_, err := Open(t.Context(), File(path), Options{})
		require.ErrorIs(t, err, ErrUnsupported, path)
		assert.ErrorContains(t, err, says)
		assert.True(t, spec.IsPermanent(err))
		_, err = Probe(t.Context(), File(path), Options{})
		require.ErrorIs(t, err, ErrUnsupported, path)
	}
	pcm, err := Open(t.Context(), File(at("good.wav")), Options{})
	require.NoError(t, err)
	require.NoError(t, pcm.Close())
	_, err = Open(t.Context(), File(at("link.wav")), Options{})
	require.ErrorIs(t, err, ErrUnsupported)
	assert.NotContains(t, err.Error(), "/root:", "more of another file than its first bytes")
	_, err = Open(t.Context(), File(at("missing.wav")), Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.False(t, spec.IsPermanent(err))
}

func TestLengthAndSizeLimits(t *testing.T) {
	needFFmpeg(t)
	second := wavFile{data: s16(tone(SampleRate, 440, 1))}.bytes()
	endless := wavFile{data: s16(tone(SampleRate, 440, 1)), dataSize: size(0xffffffff)}.bytes()
	flac, err := os.ReadFile("testdata/formats/no_extension") // 3 s, length declared
	require.NoError(t, err)
	opus, err := os.ReadFile("testdata/formats/webm_opus_live.webm") // 11 s, length not declared
	require.NoError(t, err)
	for _, c := range []struct {
		name    string
		content []byte
		opt     Options
		kind    error
	}{
		{"as the specification", second, Options{}, nil},
		{"fewer bytes than 1 KiB", second[:1023], Options{}, ErrTooSmall},
		{"just enough bytes", second, Options{MinBytes: int64(len(second))}, nil},
		{"one byte short", second, Options{MinBytes: int64(len(second)) + 1}, ErrTooSmall},
		{"at the upper limit", second, Options{MaxBytes: int64(len(second))}, nil},
		{"one byte too many", second, Options{MaxBytes: int64(len(second)) - 1}, ErrTooLarge},
		{"exactly as long as allowed", second, Options{MaxSeconds: 1}, nil},
		{"one sample too long", second, Options{MaxSeconds: 1 - 70e-6}, ErrTooLong},
		{"too long, length unknown", endless, Options{MaxSeconds: 0.5}, ErrTooLong},
		{"flac at its limit", flac, Options{MaxSeconds: 3}, nil},
		{"flac too long", flac, Options{MaxSeconds: 2}, ErrTooLong},
		{"flac too large", flac, Options{MaxBytes: 60000}, ErrTooLarge},
		{"flac too small", flac, Options{MinBytes: 70000}, ErrTooSmall},
		{"length not declared, too long", opus, Options{MaxSeconds: 10}, ErrTooLong},
		{"no limits", opus, Options{MinBytes: -1, MaxBytes: -1, MaxSeconds: -1, MaxDecodeTime: -1}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "upload")
			require.NoError(t, os.WriteFile(path, c.content, 0o600))
			sources := []Source{File(path), reader(c.content, "upload"), Reader(iotest.OneByteReader(bytes.NewReader(c.content)), "upload")}
			if testing.Short() && !bytes.HasPrefix(c.content, []byte("RIFF")) {
				sources = sources[2:] // ffmpeg starts for each
			}
			for _, src := range sources {
				pcm, err := Open(t.Context(), src, c.opt)
				if c.kind == nil {
					require.NoError(t, err)
					require.NoError(t, pcm.Close())
					continue
				}
				require.ErrorIs(t, err, c.kind)
				assert.ErrorContains(t, err, "expected at ")
				assert.True(t, spec.IsPermanent(err))
			}
			_, err := Probe(t.Context(), File(path), c.opt)
			if c.kind == nil {
				require.NoError(t, err)
			} else if c.name != "one sample too long" {
				require.ErrorIs(t, err, c.kind)
			}
		})
	}
}

// TestFailedReadIsAMachineError checks that a failed read is an error of the
// machine and keeps its cause.
func TestFailedReadIsAMachineError(t *testing.T) {
	broken := errors.New("the line went dead")
	wav := wavFile{data: s16(tone(SampleRate, 440, 5))}.bytes()
	flac, err := os.ReadFile("testdata/formats/no_extension")
	require.NoError(t, err)
	for _, content := range [][]byte{wav[:5], wav[:40], wav[:100000], flac[:20], flac} {
		for _, f := range []func(Source) error{
			func(s Source) error { _, err := Open(t.Context(), s, Options{}); return err },
			func(s Source) error { _, err := Probe(t.Context(), s, Options{}); return err },
		} {
			err := f(Reader(io.MultiReader(bytes.NewReader(content), iotest.ErrReader(broken)), "upload"))
			require.ErrorIs(t, err, broken)
			assert.False(t, spec.IsPermanent(err))
			assert.ErrorContains(t, err, "upload")
		}
	}
	_, err = Open(t.Context(), reader(flac, "upload"), Options{TempDir: "testdata/formats/no_extension"})
	require.ErrorIs(t, err, syscall.ENOTDIR)
	assert.False(t, spec.IsPermanent(err))
}

func TestRawSamples(t *testing.T) {
	src := tone(48000, 440, 0.5)
	pcm, err := Open(t.Context(), Raw(src, 48000, 1), Options{})
	require.NoError(t, err)
	defer pcm.Close()
	assert.Equal(t, 8000, pcm.Len())
	assert.Equal(t, Info{Duration: 0.5, Container: "raw", Codec: "pcm_f32le", SampleRate: 48000, Channels: 1}, pcm.Info())
	want := tone(SampleRate, 440, 0.5)
	for i, x := range pcm.Samples(0, pcm.Len()) {
		require.InDelta(t, want[i], x, 1e-4)
	}
	info, err := Probe(t.Context(), Raw(src, 48000, 1), Options{})
	require.NoError(t, err)
	assert.Equal(t, pcm.Info(), info)
	for _, bad := range []Source{Raw(src, 0, 1), Raw(src, 48000, 0), Raw(src[:999], 48000, 2), Raw(src, 48000, 65), nilSource{}, nil} {
		_, err := Open(t.Context(), bad, Options{})
		require.ErrorIs(t, err, ErrUnsupported)
	}
	_, err = Open(t.Context(), Raw(nil, 48000, 1), Options{})
	require.ErrorIs(t, err, ErrNoAudio)
	_, err = Open(t.Context(), Raw(src, 48000, 1), Options{MaxSeconds: 0.25})
	require.ErrorIs(t, err, ErrTooLong)
}

type nilSource struct{}

func (nilSource) Name() string { return "nothing" }
func (nilSource) source()      {}

// TestFileWithoutName opens recordings as the service does after copying them
// from S3: by the path of a descriptor, with the name already deleted.
func TestFileWithoutName(t *testing.T) {
	needFFmpeg(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has such paths")
	}
	for _, name := range []string{"UPPER.WAV", "amr_nb_8k.amr"} {
		data, err := os.ReadFile(mustOwn("formats/" + name))
		require.NoError(t, err)
		f, err := os.Create(filepath.Join(t.TempDir(), "copy"))
		require.NoError(t, err)
		defer f.Close()
		_, err = f.Write(data)
		require.NoError(t, err)
		require.NoError(t, os.Remove(f.Name()))
		pcm, err := Open(t.Context(), File(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())), Options{})
		require.NoError(t, err)
		assert.Equal(t, md5Hex(data), pcm.Info().MD5)
		require.NoError(t, pcm.Close())
	}
}

// TestReadersThatHang: a context ends the wait for a reader, and a nil reader
// is an error; a panic of a reader reaches the caller.
func TestReadersThatHang(t *testing.T) {
	in, out := io.Pipe() // nobody writes
	defer out.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, Reader(in, "a"), Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = Open(t.Context(), Reader(nil, "a"), Options{})
	require.ErrorIs(t, err, ErrUnsupported)
	assert.PanicsWithValue(t, "mine", func() { _, _ = Open(t.Context(), Reader(broken{}, "a"), Options{}) })
}

type broken struct{}

func (broken) Read([]byte) (int, error) { panic("mine") }
