package mediafiles

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStem(t *testing.T) {
	for name, want := range map[string]string{
		"talk.opus": "talk", "Talk.MP3": "Talk", "1.1 Lesson name": "1.1 Lesson name", "2024.05.01 talk": "2024.05.01 talk", "v1.2.wav": "v1.2",
		"a.b.c": "a.b.c", "x": "x", "": "", "dir.d/rec.m4a": "dir.d/rec", "no ending.": "no ending.", "archive.tar.gz": "archive.tar.gz",
	} {
		assert.Equal(t, want, Stem(name), name)
	}
}

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.OPUS", "a/c.mpga", "a/d.m2ts", "a/notes.txt", "a/no ending", ".git/lfs/e.wav", ".ipynb_checkpoints/f.opus", "a/.g.mp3", "elsewhere"} {
		path := filepath.Join(dir, "walked", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, nil, 0o666))
	}
	top := filepath.Join(dir, "walked")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "annexed"), nil, 0o666))
	require.NoError(t, os.Symlink(filepath.Join(dir, "annexed"), filepath.Join(top, "link.wav")))
	require.NoError(t, os.Symlink("nowhere.wav", filepath.Join(top, "broken.wav")))
	require.NoError(t, os.Symlink("..", filepath.Join(top, "round.wav")))
	files, others, err := Walk(top)
	require.NoError(t, err)
	want := []string{"a/c.mpga", "a/d.m2ts", "b.OPUS", "link.wav"}
	for i := range want {
		want[i] = filepath.Join(top, want[i])
	}
	assert.Equal(t, want, files)
	want = []string{"a/no ending", "a/notes.txt", "broken.wav", "elsewhere", "round.wav"}
	for i := range want {
		want[i] = filepath.Join(top, want[i])
	}
	assert.Equal(t, want, others)
	_, _, err = Walk(filepath.Join(dir, "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
