package blob_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/internal/test/outside"
)

// TestCopiesOfKilledProcessesAreRemoved checks that the copies of killed
// processes are removed and that other files stay, regardless of their names.
func TestCopiesOfKilledProcessesAreRemoved(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	endpoint := outside.S3(t, "files")
	local := func(dir string) (string, func()) {
		t.Helper()
		path, release, err := s3At(t, endpoint).Local(t.Context(), "audio/a.wav", dir)
		require.NoError(t, err)
		t.Cleanup(release)
		return path, release
	}
	put(t, s3At(t, endpoint), "audio/a.wav", []byte("sound"))
	alive, release := local(t.TempDir())
	marker, err := os.ReadFile(filepath.Join(filepath.Dir(alive), "lock"))
	require.NoError(t, err)
	require.NotEmpty(t, marker)

	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	write := func(name string, text []byte) { require.NoError(t, os.WriteFile(at(name), text, 0o600)) }
	for _, name := range []string{"elsewhere", "otograph-copy-dead", "otograph-copy-empty", "otograph-copy-held", "otograph-copy-linked", "otograph-copy-longer", "otograph-copy-open", "otograph-copy-with-more"} {
		require.NoError(t, os.Mkdir(at(name), 0o700))
		write(name+"/copy.wav", []byte("sound"))
		write(name+"/lock", marker)
	}
	write("otograph-copy-empty/lock", nil)
	write("otograph-copy-longer/lock", append(marker, '\n'))
	write("otograph-copy-with-more/copy of mine.wav", []byte("mine"))
	write("otograph-copy-of-interview.tar.gz", []byte("mine"))
	require.NoError(t, os.Chmod(at("otograph-copy-open"), 0o755))
	require.NoError(t, os.Remove(at("otograph-copy-linked/lock")))
	require.NoError(t, os.Symlink("lock-of-mine", at("otograph-copy-linked/lock")))
	write("otograph-copy-linked/lock-of-mine", marker)
	require.NoError(t, os.Symlink(at("elsewhere"), at("otograph-copy-link")))
	held, err := os.Open(at("otograph-copy-held/lock")) // locked as by another process
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, host.TryLock(held))

	own, releaseOwn := local(dir)
	other, _ := local(dir) // sweeps, too
	require.FileExists(t, own)
	require.FileExists(t, other)
	releaseOwn()
	require.NoDirExists(t, filepath.Dir(own))
	sound, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, "sound", string(sound))

	var left []string
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && at(filepath.Dir(path)) != filepath.Dir(other) {
			left = append(left, path)
		}
		return err
	}))
	assert.Equal(t, []string{
		"elsewhere/copy.wav", "elsewhere/lock",
		"otograph-copy-empty/copy.wav", "otograph-copy-empty/lock", "otograph-copy-held/copy.wav", "otograph-copy-held/lock", "otograph-copy-link",
		"otograph-copy-linked/copy.wav", "otograph-copy-linked/lock", "otograph-copy-linked/lock-of-mine",
		"otograph-copy-longer/copy.wav", "otograph-copy-longer/lock", "otograph-copy-of-interview.tar.gz",
		"otograph-copy-open/copy.wav", "otograph-copy-open/lock", "otograph-copy-with-more/copy of mine.wav",
	}, left)
	require.NoDirExists(t, at("otograph-copy-dead"))

	release()
	require.NoDirExists(t, filepath.Dir(alive))
}
