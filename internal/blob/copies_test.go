package blob_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/flock"
)

// TestCopiesOfKilledProcessesGo: recordings do not pile up where processes were killed that had copies of them, and nothing
// else goes.
func TestCopiesOfKilledProcessesGo(t *testing.T) {
	each(t, func(t *testing.T, s *blob.Store) {
		if s.Folder() {
			t.Skip("a folder store makes no copies")
		}
		put(t, s, "audio/a.wav", []byte("sound"))
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		for _, name := range []string{"otograph-copy-1.wav", "otograph-copy-2.wav", "otograph-copy", "other.wav"} {
			require.NoError(t, os.WriteFile(at(name), []byte("sound"), 0o600))
		}
		require.NoError(t, os.Symlink(at("other.wav"), at("otograph-copy-3.wav")))
		require.NoError(t, os.Mkdir(at("otograph-copy-4"), 0o700))
		alive, err := os.Open(at("otograph-copy-2.wav")) // as another process holds it
		require.NoError(t, err)
		defer alive.Close()
		require.NoError(t, flock.Try(alive))

		first, releaseFirst, err := s.Local(t.Context(), "audio/a.wav", dir)
		require.NoError(t, err)
		var left []string
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if at(e.Name()) != first {
				left = append(left, e.Name())
			}
		}
		assert.Equal(t, []string{"other.wav", "otograph-copy", "otograph-copy-2.wav", "otograph-copy-3.wav", "otograph-copy-4"}, left)

		held, err := os.Open(first)
		require.NoError(t, err)
		defer held.Close()
		require.ErrorIs(t, flock.Try(held), flock.ErrTaken, "no other process takes the copy for a dead one's")
		releaseFirst()
		_, err = os.Stat(first)
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}
