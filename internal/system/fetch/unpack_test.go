package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small limits the archives of these tests.
var small = ArchiveLimits{Files: 1000, Bytes: 3 << 20}

func base(name string) string { return path.Base(name) }

func place(t *testing.T, file string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, data, 0o600))
}

func tarball(t *testing.T, add func(w *tar.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add(w)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func addFile(t *testing.T, w *tar.Writer, name string, data []byte) {
	t.Helper()
	require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}))
	_, err := w.Write(data)
	require.NoError(t, err)
}

// TestArchivesAreUnpacked checks that the wanted files of each kind of archive
// have their content and place.
func TestArchivesAreUnpacked(t *testing.T) {
	packed := tarball(t, func(w *tar.Writer) {
		addFile(t, w, "x/a.wav", []byte("sound"))
		addFile(t, w, "x/.hidden.wav", []byte("junk"))
		addFile(t, w, "x/b.txt", []byte("text"))
		addFile(t, w, "x/readme.md", []byte("unwanted"))
	})
	for name, data := range map[string][]byte{
		"tar": packed, "tar.gz": gzipped(t, packed),
	} {
		dir := t.TempDir()
		place(t, filepath.Join(dir, "a"), data)
		err := Unpack(t.Context(), filepath.Join(dir, "a"), dir, small, func(name string) string {
			return map[string]string{".wav": "sounds/", ".txt": "texts/"}[path.Ext(name)] + strings.TrimSuffix(path.Base(name), "readme.md")
		})
		require.NoError(t, err, name)
		names, err := fs.Glob(os.DirFS(dir), "*/*")
		require.NoError(t, err, name)
		assert.Equal(t, []string{"sounds/a.wav", "texts/b.txt"}, names, name)
		sound, err := os.ReadFile(filepath.Join(dir, "sounds/a.wav"))
		require.NoError(t, err, name)
		assert.Equal(t, "sound", string(sound), name)
	}
}

func TestHostileArchives(t *testing.T) {
	big := func(w *tar.Writer) {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "m.onnx", Mode: 0o644, Size: 4 << 20, Typeflag: tar.TypeReg}))
		_, err := io.CopyN(w, zeros{}, 4<<20)
		require.NoError(t, err)
	}
	cases := map[string]struct {
		data []byte
		says string
	}{
		"climbs out":    {tarball(t, func(w *tar.Writer) { addFile(t, w, "../../m.onnx", []byte("x")) }), "points outside"},
		"absolute":      {tarball(t, func(w *tar.Writer) { addFile(t, w, "/tmp/m.onnx", []byte("x")) }), "points outside"},
		"twice":         {tarball(t, func(w *tar.Writer) { addFile(t, w, "a/m.onnx", nil); addFile(t, w, "b/m.onnx", nil) }), "twice"},
		"sparse bomb":   {sparse(t), "unpacks to more"},
		"bomb":          {gzipped(t, tarball(t, big)), "unpacks to more"},
		"cut":           {tarball(t, func(w *tar.Writer) { addFile(t, w, "m.onnx", make([]byte, 5000)) })[:3000], "EOF"},
		"no archive":    {bytes.Repeat([]byte("not a tar "), 200), "tar"},
		"empty":         {nil, "expected an archive"},
		"damaged bzip2": {[]byte("BZh9 and then nothing of the kind"), "bzip2"},
		"many, many files": {tarball(t, func(w *tar.Writer) {
			for i := range small.Files + 1 {
				addFile(t, w, fmt.Sprint(i), nil)
			}
		}), "more than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			place(t, filepath.Join(dir, "a.tar"), c.data)
			out := filepath.Join(dir, "out", "deep")
			require.NoError(t, os.MkdirAll(out, 0o755))
			err := Unpack(t.Context(), filepath.Join(dir, "a.tar"), out, small, base)
			require.ErrorIs(t, err, ErrArchive)
			assert.ErrorContains(t, err, c.says)
			around, err := os.ReadDir(filepath.Join(dir, "out"))
			require.NoError(t, err)
			assert.Len(t, around, 1, "nothing is written outside")
		})
	}
	// Links are skipped.
	dir := t.TempDir()
	place(t, filepath.Join(dir, "a.tar"), tarball(t, func(w *tar.Writer) {
		for _, kind := range []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeFifo} {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: "m.onnx", Typeflag: kind, Linkname: "/etc/passwd"}))
		}
	}))
	out := t.TempDir()
	require.NoError(t, Unpack(t.Context(), filepath.Join(dir, "a.tar"), out, small, base))
	names, err := os.ReadDir(out)
	require.NoError(t, err)
	assert.Empty(t, names)
}

// sparse returns an archive of a 2 GB file that is one hole, in the sparse
// format 1.0 of GNU tar. tar.Writer does not support this format, so the
// records get their names afterwards.
func sparse(t *testing.T) []byte {
	data := make([]byte, 512)
	copy(data, "1\n2147483648\n0\n") // one piece of zero bytes at the end
	b := tarball(t, func(w *tar.Writer) {
		require.NoError(t, w.WriteHeader(&tar.Header{
			Name: "m.onnx", Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg, Format: tar.FormatPAX, PAXRecords: map[string]string{
				"XNU.sparse.major": "1", "XNU.sparse.minor": "0", "XNU.sparse.name": "m.onnx", "XNU.sparse.realsize": "2147483648",
			},
		}))
		_, err := w.Write(data)
		require.NoError(t, err)
	})
	return bytes.ReplaceAll(b, []byte("XNU.sparse"), []byte("GNU.sparse"))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func FuzzUnpack(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "d/m.onnx", Mode: 0o644, Size: 3, Typeflag: tar.TypeReg})
	_, _ = w.Write([]byte("abc"))
	_ = w.Close()
	f.Add(b.Bytes())
	f.Add([]byte("BZh9"))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte{0x1f, 0x8b, 8})
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		place(t, filepath.Join(dir, "a.tar"), data)
		out := filepath.Join(dir, "out")
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(context.Background(), filepath.Join(dir, "a.tar"), out, small, base); err != nil && !errors.Is(err, ErrArchive) {
			var disk *os.PathError // a name that the file system rejects
			if !errors.As(err, &disk) {
				t.Fatalf("an error of another kind: %v", err)
			}
		}
		found, err := os.ReadDir(dir)
		if err != nil || len(found) != 2 {
			t.Fatalf("something was written outside: %v %v", found, err)
		}
	})
}
