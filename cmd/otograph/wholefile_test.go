package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func put(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	require.NoError(t, checkWritable(path))
	require.NoError(t, writeWhole(path, put("one")))
	require.ErrorContains(t, writeWhole(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return errors.New("broken off")
	}), "broken off")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "one", string(data))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left behind")

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("a.txt", link))
	require.NoError(t, writeWhole(link, put("two")))
	data, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "two", string(data), "a link stays one")
}

// A device or a pipe is written to and never replaced; otherwise root could
// lose /dev/null.
func TestWriteWholeKeepsSpecialFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	read := make(chan string, 1)
	go func() {
		data, _ := os.ReadFile(pipe)
		read <- string(data)
	}()
	require.NoError(t, checkWritable(pipe))
	require.NoError(t, writeWhole(pipe, put("through")))
	assert.Equal(t, "through", <-read)
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	assert.Equal(t, os.ModeNamedPipe, info.Mode().Type())
	_, special, err := writeTarget(os.DevNull)
	require.NoError(t, err)
	assert.True(t, special)
}

func TestUnwritableTargetIsAnError(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "no", "a.srt")
	for _, err := range []error{checkWritable(missing), writeWhole(missing, put("x"))} {
		require.ErrorIs(t, err, os.ErrNotExist)
		assert.ErrorContains(t, err, "cannot write "+missing+": folder "+filepath.Dir(missing))
	}
	assert.ErrorContains(t, checkWritable(dir), "is a folder")
}
