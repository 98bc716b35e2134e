package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/system/db"
)

// TestPrepareFolder checks that other users lose access to a folder and its
// database, and that a folder with other files is refused and unchanged.
func TestPrepareFolder(t *testing.T) {
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	write := func(path string) {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		require.NoError(t, os.Chmod(path, 0o644))
	}
	made := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, state.PrepareFolder(made))
	assert.EqualValues(t, 0o700, mode(made))

	own := t.TempDir()
	require.NoError(t, os.Chmod(own, 0o755))
	database := filepath.Join(own, db.DataFile)
	write(database)
	write(filepath.Join(own, state.FirstKeyFile))
	require.NoError(t, os.Mkdir(filepath.Join(own, state.MetricsFolder), 0o700))
	require.NoError(t, state.PrepareFolder(own))
	assert.EqualValues(t, 0o700, mode(own))
	assert.EqualValues(t, 0o600, mode(database))

	foreign := t.TempDir()
	require.NoError(t, os.Chmod(foreign, 0o755))
	write(filepath.Join(foreign, "letter.txt"))
	err := state.PrepareFolder(foreign)
	require.ErrorIs(t, err, state.ErrOpenFolder)
	assert.ErrorContains(t, err, foreign+" (mode 0755)")
	assert.EqualValues(t, 0o755, mode(foreign))
	require.NoError(t, os.Chmod(foreign, 0o700))
	assert.NoError(t, state.PrepareFolder(foreign), "only the owner can open it")
}
