package main

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/fetch"
)

// zipOf returns a zip archive of files, given as names and contents in turn.
func zipOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: files[i], Method: zip.Deflate})
		require.NoError(t, err)
		_, err = f.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// unzipped extracts an archive below a new folder, and returns the folder.
func unzipped(t *testing.T, data []byte, place func(string) string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.zip"), data, 0o600))
	out := filepath.Join(dir, "out", "deep")
	require.NoError(t, os.MkdirAll(out, 0o755))
	err := unpack(t.Context(), filepath.Join(dir, "a.zip"), out, fetch.ArchiveLimits{Files: 10, Bytes: 3 << 20}, place)
	around, failed := os.ReadDir(filepath.Join(dir, "out"))
	require.NoError(t, failed)
	assert.Len(t, around, 1, "nothing is written outside")
	return out, err
}

func TestUnzipTakesWantedFiles(t *testing.T) {
	data := zipOf(t, "x/a.wav", "sound", "x/.hidden.wav", "junk", "x/b.txt", "text", "x/readme.md", "unwanted")
	dir, err := unzipped(t, data, func(name string) string {
		return map[string]string{".wav": "sounds/", ".txt": "texts/"}[path.Ext(name)] + strings.TrimSuffix(path.Base(name), "readme.md")
	})
	require.NoError(t, err)
	names, err := fs.Glob(os.DirFS(dir), "*/*")
	require.NoError(t, err)
	assert.Equal(t, []string{"sounds/a.wav", "texts/b.txt"}, names)
	sound, err := os.ReadFile(filepath.Join(dir, "sounds/a.wav"))
	require.NoError(t, err)
	assert.Equal(t, "sound", string(sound))
}

func TestHostileZips(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"climbs out": {zipOf(t, "../../m.onnx", "x"), "points outside"},
		"absolute":   {zipOf(t, "/tmp/m.onnx", "x"), "points outside"},
		"backslash":  {zipOf(t, `..\m.onnx`, "x"), "points outside"},
		"twice":      {zipOf(t, "a/m.onnx", "x", "b/m.onnx", "x"), "twice"},
		"bomb":       {zipOf(t, "m.onnx", strings.Repeat("0", 4<<20)), "unpacks to more"},
		"in parts":   {zipOf(t, "a.onnx", strings.Repeat("0", 2<<20), "b.onnx", strings.Repeat("0", 2<<20)), "unpacks to more"},
		"lies":       {bytes.ReplaceAll(zipOf(t, "m.onnx", strings.Repeat("0", 65_536)), []byte{0, 0, 1, 0}, []byte{9, 0, 0, 0}), "zip"},
		"cut":        {zipOf(t, "m.onnx", "x")[:20], "zip"},
		"many files": {zipOf(t, strings.Split("1,a,2,b,3,c,4,d,5,e,6,f,7,g,8,h,9,i,10,j,11,k", ",")...), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unzipped(t, c.data, path.Base)
			require.ErrorIs(t, err, fetch.ErrArchive)
			assert.ErrorContains(t, err, c.says)
		})
	}
}
