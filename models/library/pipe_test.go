//go:build unix

package library

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
)

// TestPipesAreNotOpened opens and imports folders with pipes where files are
// expected; no process ever writes to them.
func TestPipesAreNotOpened(t *testing.T) {
	for _, name := range []string{"model.bin", "adapter_config.json", "config.json", "refs/main"} {
		dir := modeltest.Folder(t, map[string][]byte{"model.safetensors": nil, "refs/other": nil})
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
		set, err := OpenDir(dir)
		require.NoError(t, err, name)
		assert.Empty(t, set.Models)
		_, err = (&Store{Dir: t.TempDir()}).Import(t.Context(), dir, ImportOptions{})
		require.ErrorIs(t, err, models.ErrMissing, name)
	}
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, manifestName), 0o600))
	_, err := OpenDir(dir)
	require.ErrorIs(t, err, models.ErrBroken)
	assert.ErrorContains(t, err, "found a named pipe")
}
