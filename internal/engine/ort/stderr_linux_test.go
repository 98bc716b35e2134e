package ort

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// stderr returns the output to the process's file descriptor 2 during f.
func stderr(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	saved, err := syscall.Dup(2)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(file.Fd()), 2, 0))
	defer func() {
		_ = syscall.Dup3(saved, 2, 0)
		_ = syscall.Close(saved)
		file = nil
	}()
	f()
	data, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	return string(data)
}
