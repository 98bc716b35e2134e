package blob_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/blob"
)

// TestFullDiskLeavesNothing fills a small tmpfs and checks for ErrFull, no partial file,
// and free space afterwards.
// It covers T2 of test/README.md.
func TestFullDiskLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a tmpfs needs privileges: %v", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, 0)) }()
	s, err := blob.Open(t.Context(), dir)
	require.NoError(t, err)
	defer s.Close()
	put(t, s, "audio/a", make([]byte, 600_000))
	w, err := s.Create(t.Context(), "audio/b")
	require.NoError(t, err)
	_, err = w.Write(make([]byte, 600_000))
	if err == nil {
		_, err = w.Commit()
	}
	w.Abort()
	require.ErrorIs(t, err, blob.ErrFull)
	assert.Equal(t, []string{"audio/a"}, keys(t, s, ""))
	require.NoError(t, s.Delete(t.Context(), "audio/a"))
	put(t, s, "audio/b", make([]byte, 600_000))
	t.Logf("T2: file store on 1 MB: second file answered %q, room again after the first was deleted", errors.Unwrap(blob.ErrFull))
}
