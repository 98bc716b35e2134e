package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLockHoldsUntilItsFileIsClosed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first, second := open(), open()
	require.NoError(t, TryLock(first))
	assert.ErrorIs(t, TryLock(second), ErrLocked)
	got := make(chan error, 1)
	go func() { got <- WaitLock(second) }()
	require.NoError(t, first.Close())
	require.NoError(t, <-got)
	assert.ErrorIs(t, TryLock(open()), ErrLocked)
}
