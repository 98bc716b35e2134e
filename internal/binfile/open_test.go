//go:build unix

package binfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOpen checks that no pipe is opened: no process ever writes to it.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	f, size, err := Open(file)
	require.NoError(t, err)
	assert.EqualValues(t, 4, size)
	require.NoError(t, f.Close())
	for path, want := range map[string]string{pipe: "pipe: expected a regular file, found a pipe", dir: "found a folder", os.DevNull: "found a device"} {
		_, _, err := Open(path)
		require.ErrorIs(t, err, ErrNotFile)
		assert.ErrorContains(t, err, want)
	}
	_, _, err = Open(filepath.Join(dir, "absent"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
