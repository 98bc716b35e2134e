package blob_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/test/outside"
)

func TestClaim(t *testing.T) {
	mine := blob.Identity{Database: "mine", Place: "here"}
	for name, c := range map[string]struct {
		files   []string
		before  *blob.Identity
		claimed bool
		want    error
	}{
		"first start":                                 {},
		"strangers' files beside ours":                {files: []string{"photos/a.jpg", "readme"}},
		"files of an unknown service":                 {files: []string{"audio/x"}, want: blob.ErrUnclaimed},
		"results of an unknown service":               {files: []string{"results/x"}, want: blob.ErrUnclaimed},
		"a later start":                               {before: &mine, claimed: true, files: []string{"audio/x"}},
		"a store without identity at a later start":   {claimed: true, want: blob.ErrLost},
		"another database":                            {before: &blob.Identity{Database: "theirs"}, want: blob.ErrForeign},
		"another database at a later start":           {before: &blob.Identity{Database: "theirs"}, claimed: true, want: blob.ErrForeign},
		"a copy of the database in another place":     {before: &blob.Identity{Database: "mine", Place: "there"}, claimed: true, want: blob.ErrForeign},
		"an interrupted first start that had written": {before: &mine},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *blob.Store) {
				for _, key := range c.files {
					put(t, s, key, []byte("x"))
				}
				if c.before != nil {
					_, err := s.Adopt(t.Context(), *c.before)
					require.NoError(t, err)
				}
				err := s.Claim(t.Context(), mine, c.claimed)
				if c.want == nil {
					require.NoError(t, err)
					found, err := s.Identity(t.Context())
					require.NoError(t, err)
					assert.Equal(t, mine, found)
					return
				}
				require.ErrorIs(t, err, c.want)
				assert.NotContains(t, err.Error(), "\n")
				if c.before == nil {
					_, err := s.Identity(t.Context())
					require.ErrorIs(t, err, blob.ErrNotFound, "nothing was written")
				}
				before, err := s.Adopt(t.Context(), mine)
				require.NoError(t, err)
				if c.before != nil {
					assert.Equal(t, *c.before, before)
				}
				require.NoError(t, s.Claim(t.Context(), mine, true), "an adopted store belongs to this database")
			})
		})
	}
}

// TestConcurrentClaimsHaveOneWinner checks that exactly one of two databases gets an empty
// store that both claim.
func TestConcurrentClaimsHaveOneWinner(t *testing.T) {
	s, err := blob.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer s.Close()
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() { errs[i] = s.Claim(t.Context(), blob.Identity{Database: fmt.Sprint(i)}, false) })
	}
	wait.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, blob.ErrForeign)
	}
	assert.Equal(t, 1, won)
}

func s3At(t *testing.T, endpoint string) *blob.Store {
	t.Helper()
	s, err := blob.Open(t.Context(), outside.S3Store(endpoint, "files"))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestStoreCheckNamesTheFault checks that a store's fault is reported in one
// line before the store is used.
func TestStoreCheckNamesTheFault(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	refuse := func(status int, code string) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>no</Message></Error>`, code)
		}))
		t.Cleanup(server.Close)
		return server
	}
	absent := outside.S3(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	require.NoError(t, err)
	t.Cleanup(func() { silent.Close() })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct{ endpoint, says string }{
		"no such bucket":  {absent, "there is no such bucket"},
		"unknown key":     {refuse(403, "InvalidAccessKeyId").URL, "refused the credentials (InvalidAccessKeyId)"},
		"wrong secret":    {refuse(403, "SignatureDoesNotMatch").URL, "refused the credentials (SignatureDoesNotMatch)"},
		"no permission":   {refuse(403, "AccessDenied").URL, "denied the access"},
		"nobody there":    {gone.URL, "refused the connection"},
		"no such host":    {"http://store.invalid", "store.invalid"},
		"silent":          {"http://" + silent.Addr().String(), "does not answer"},
		"trouble of S3's": {refuse(500, "InternalError").URL, "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := 30 * time.Second // for the client's retries
			if name == "silent" {
				limit = time.Second
			}
			s := s3At(t, c.endpoint)
			s.Limit(limit, limit)
			begun := time.Now()
			err := s.Check(t.Context())
			require.ErrorIs(t, err, blob.ErrUnavailable)
			assert.Contains(t, err.Error(), c.says)
			assert.NotContains(t, err.Error(), "\n")
			require.ErrorIs(t, s.Probe(t.Context()), blob.ErrUnavailable)
			t.Logf("%s after %.1f s", err, time.Since(begun).Seconds())
		})
	}
	t.Run("no credentials", func(t *testing.T) {
		for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
			t.Setenv(name, "")
		}
		t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
		t.Setenv("HOME", t.TempDir())
		err := s3At(t, absent).Check(t.Context())
		require.ErrorIs(t, err, blob.ErrUnavailable)
		assert.Contains(t, err.Error(), "no credentials: set AWS_ACCESS_KEY_ID")
	})
	each(t, func(t *testing.T, s *blob.Store) {
		require.NoError(t, s.Check(t.Context()))
		require.NoError(t, s.Probe(t.Context()))
		assert.Empty(t, keys(t, s, ""), "a probe leaves nothing")
	})
}

// TestHangingStoreEndsInTime stops an S3 server at any point and checks that
// each operation ends within its limit.
func TestHangingStoreEndsInTime(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	at, err := url.Parse(outside.S3(t, "files"))
	require.NoError(t, err)
	real := httputil.NewSingleHostReverseProxy(at)
	hold := make(chan struct{})
	var hang atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hang.Load() {
			<-hold
			return
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hold) })
	var seen sync.Map
	const limit = 300 * time.Millisecond
	s := s3At(t, server.URL)
	s.Limit(limit, limit)
	s.Observe(func(op string, took time.Duration, err error) {
		if err != nil {
			seen.Store(op, took)
		}
	})
	put(t, s, "audio/a", []byte("x"))
	w, err := s.Create(t.Context(), "audio/b")
	require.NoError(t, err)
	hang.Store(true)
	for op, work := range map[string]func() error{
		"open":   func() error { _, err := s.Open(t.Context(), "audio/a"); return err },
		"delete": func() error { return s.Delete(t.Context(), "audio/a") },
		"list":   func() error { return s.List(t.Context(), "", func(blob.Object) error { return nil }) },
		"commit": func() error {
			for range 20 { // several parts of 5 MB
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return err
				}
			}
			_, err := w.Commit()
			return err
		},
		"check": func() error { return s.Check(t.Context()) },
	} {
		err := work()
		require.ErrorIs(t, err, blob.ErrUnavailable, op)
		assert.True(t, strings.Contains(err.Error(), "no answer within") || strings.Contains(err.Error(), "does not answer"), "%s: %v", op, err)
	}
	for _, op := range []string{"open", "delete"} {
		_, failed := seen.Load(op)
		assert.True(t, failed, "%s was observed", op)
	}
}

// TestLocalCopiesHaveNoName checks that a killed process leaves no copy.
func TestLocalCopiesHaveNoName(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("copies have names on other systems")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	s, dir := s3At(t, outside.S3(t, "files")), t.TempDir()
	put(t, s, "audio/a.wav", []byte("sound"))
	path, release, err := s.Local(t.Context(), "audio/a.wav", dir)
	require.NoError(t, err)
	for range 2 {
		sound, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "sound", string(sound))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	release()
	assert.NoFileExists(t, path)
}
