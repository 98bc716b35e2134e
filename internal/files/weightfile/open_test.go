//go:build unix

package weightfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOpen checks that a pipe is not opened: opening one without a writer would
// block.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	f, size, err := Open(file)
	require.NoError(t, err)
	assert.EqualValues(t, 4, size)
	require.NoError(t, f.Close())
	for path, want := range map[string]string{pipe: "pipe: expected a regular file, found a named pipe", dir: "found a folder", os.DevNull: "found a device"} {
		_, _, err := Open(path)
		require.ErrorIs(t, err, ErrNotFile)
		assert.ErrorContains(t, err, want)
	}
	_, _, err = Open(filepath.Join(dir, "absent"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// TestOpenWhileReplaced checks that the size is the opened file's.
func TestOpenWhileReplaced(t *testing.T) {
	dir := t.TempDir()
	path, fresh := filepath.Join(dir, "model"), filepath.Join(dir, "fresh")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 300 && err == nil; i++ {
			if err = os.WriteFile(fresh, make([]byte, i%2*100), 0o600); err == nil {
				err = os.Rename(fresh, path)
			}
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			require.NoError(t, err)
			return
		default:
		}
		f, size, err := Open(path)
		require.NoError(t, err)
		data, err := io.ReadAll(f)
		require.NoError(t, errors.Join(err, f.Close()))
		require.EqualValues(t, len(data), size)
	}
}
