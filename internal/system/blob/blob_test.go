package blob_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/test/outside"
)

// each runs test with a folder and with a server that plays S3.
func each(t *testing.T, test func(t *testing.T, s *blob.Store)) {
	t.Run("folder", func(t *testing.T) {
		s, err := blob.Open(t.Context(), "file://"+filepath.Join(t.TempDir(), "blobs"))
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		test(t, s)
	})
	t.Run("s3", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "test")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
		s, err := blob.Open(t.Context(), outside.S3Store(outside.S3(t, "files"), "files/some/prefix"))
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		test(t, s)
	})
}

func put(t *testing.T, s *blob.Store, key string, data []byte) blob.Info {
	t.Helper()
	w, err := s.Create(t.Context(), key)
	require.NoError(t, err)
	defer w.Abort()
	_, err = io.Copy(w, bytes.NewReader(data))
	require.NoError(t, err)
	info, err := w.Commit()
	require.NoError(t, err)
	return info
}

func keys(t *testing.T, s *blob.Store, prefix string) (found []string) {
	t.Helper()
	require.NoError(t, s.List(t.Context(), prefix, func(o blob.Object) error {
		found = append(found, o.Key)
		return nil
	}))
	return found
}

func TestWriteReadDelete(t *testing.T) {
	each(t, func(t *testing.T, s *blob.Store) {
		data := bytes.Repeat([]byte("0123456789abcdef"), 800_000) // 12.8 MB: several parts on S3
		info := put(t, s, "audio/a.wav", data)
		sum := md5.Sum(data)
		assert.Equal(t, blob.Info{Key: "audio/a.wav", Size: int64(len(data)), MD5: hex.EncodeToString(sum[:])}, info)

		r, err := s.Open(t.Context(), "audio/a.wav")
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		assert.True(t, bytes.Equal(data, got))

		path, release, err := s.Local(t.Context(), "audio/a.wav", t.TempDir())
		require.NoError(t, err)
		got, err = os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data, got))
		release()
		release()

		require.NoError(t, s.Delete(t.Context(), "audio/a.wav"))
		require.NoError(t, s.Delete(t.Context(), "audio/a.wav"))
		_, err = s.Open(t.Context(), "audio/a.wav")
		require.ErrorIs(t, err, blob.ErrNotFound)
		_, _, err = s.Local(t.Context(), "audio/a.wav", t.TempDir())
		require.ErrorIs(t, err, blob.ErrNotFound)
	})
}

func TestAbortLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *blob.Store) {
		w, err := s.Create(t.Context(), "audio/x")
		require.NoError(t, err)
		_, err = w.Write([]byte("half"))
		require.NoError(t, err)
		w.Abort()
		w.Abort()
		_, err = w.Commit()
		require.Error(t, err)
		assert.Empty(t, keys(t, s, ""))

		ctx, cancel := context.WithCancel(t.Context())
		w, err = s.Create(ctx, "audio/y")
		require.NoError(t, err)
		_, err = w.Write([]byte("half"))
		require.NoError(t, err)
		cancel()
		_, err = w.Commit()
		require.Error(t, err, "a canceled request leaves no file")
		assert.Empty(t, keys(t, s, ""))
	})
}

func TestPutWritesWholeOrNothing(t *testing.T) {
	each(t, func(t *testing.T, s *blob.Store) {
		broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
		require.ErrorIs(t, s.Put(t.Context(), "audio/x", broken), io.ErrUnexpectedEOF)
		assert.Empty(t, keys(t, s, ""))
		require.NoError(t, s.Put(t.Context(), "audio/x", strings.NewReader("whole")))
		r, err := s.Open(t.Context(), "audio/x")
		require.NoError(t, err)
		defer r.Close()
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Equal(t, "whole", string(text))
	})
}

func TestNothingVisibleBeforeCommit(t *testing.T) {
	each(t, func(t *testing.T, s *blob.Store) {
		w, err := s.Create(t.Context(), "results/x.json")
		require.NoError(t, err)
		defer w.Abort()
		_, err = w.Write([]byte("{"))
		require.NoError(t, err)
		_, err = s.Open(t.Context(), "results/x.json")
		require.ErrorIs(t, err, blob.ErrNotFound)
	})
}

func TestKeysStayInsideTheStore(t *testing.T) {
	s, err := blob.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer s.Close()
	for _, key := range []string{"", "/etc/passwd", "../x", "a/../../x", "a//b", ".hidden", "a/.x", "a b", "a\x00b", "ä"} {
		_, err := s.Create(t.Context(), key)
		require.Error(t, err, "%q", key)
	}
	_, err = blob.Open(t.Context(), "ftp://x")
	require.Error(t, err)
}

func TestDeletePrefix(t *testing.T) {
	each(t, func(t *testing.T, s *blob.Store) {
		for i := range 3 {
			put(t, s, fmt.Sprintf("audio/%d", i), []byte("x"))
		}
		put(t, s, "results/x", []byte("x"))
		require.NoError(t, s.DeletePrefix(t.Context(), "audio/"))
		assert.Equal(t, []string{"results/x"}, keys(t, s, ""))
	})
}

// TestFailedWritesLeaveNothing makes the n-th operation of writing a file fail,
// for every n, and checks that no partial file appears. It covers T25 of
// test/README.md.
func TestFailedWritesLeaveNothing(t *testing.T) {
	points, clean := 0, 0
	for n := 1; ; n++ {
		s, err := blob.Open(t.Context(), t.TempDir())
		require.NoError(t, err)
		calls := 0
		s.Inject(func(op, key string) error {
			if calls++; calls == n {
				return syscall.ENOSPC
			}
			return nil
		})
		err = func() error {
			w, err := s.Create(t.Context(), "audio/x")
			if err != nil {
				return err
			}
			defer w.Abort()
			for range 4 {
				if _, err := w.Write([]byte("part")); err != nil {
					return err
				}
			}
			_, err = w.Commit()
			return err
		}()
		s.Inject(func(string, string) error { return nil })
		found := keys(t, s, "")
		s.Close()
		if err == nil {
			assert.Equal(t, []string{"audio/x"}, found)
			break
		}
		points++
		require.ErrorIs(t, err, blob.ErrFull)
		if assert.Empty(t, found) {
			clean++
		}
	}
	t.Logf("T25: %d points of failure, %d left nothing behind", points, clean)
	assert.Equal(t, 6, points)
}
