package worker_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// source serves versions of a file and cuts connections.
type source struct {
	versions [][]byte // the content by request; the last one is repeated
	etags    []string
	cutAfter int  // bytes after which each of the first cuts connections breaks
	cuts     int  // how many connections break
	rude     bool // honors Range but not If-Range
	noRanges bool
	requests atomic.Int64
	served   atomic.Int64
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(s.requests.Add(1)) - 1
	data, tag := s.versions[min(n, len(s.versions)-1)], s.etags[min(n, len(s.etags)-1)]
	if tag != "" {
		w.Header().Set("ETag", tag)
	}
	from, status := 0, http.StatusOK
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !s.noRanges && (s.rude || r.Header.Get("If-Range") == tag) {
		from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
		status = http.StatusPartialContent
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)-from))
	w.WriteHeader(status)
	data = data[from:]
	if n < s.cuts {
		_, _ = w.Write(data[:s.cutAfter])
		s.served.Add(int64(s.cutAfter))
		w.(http.Flusher).Flush()
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
		return
	}
	_, _ = w.Write(data)
	s.served.Add(int64(len(data)))
}

func pattern(seed byte, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = seed + byte(i%251)
	}
	return data
}

// TestChangingSourceIsNeverMixed drops connections of sources that change or do
// not change meanwhile: the stored file is one version, never two joined. It
// covers T31 of test/README.md.
func TestChangingSourceIsNeverMixed(t *testing.T) {
	one, two := pattern(1, 300_000), pattern(2, 300_000)
	cases := []struct {
		name     string
		source   source
		want     []byte
		requests int64
		served   int64
	}{
		{"same content, ranges", source{versions: [][]byte{one}, etags: []string{`"1"`}, cuts: 2, cutAfter: 100_000}, one, 3, 300_000},
		{"changed, honors If-Range", source{versions: [][]byte{one, two}, etags: []string{`"1"`, `"2"`}, cuts: 1, cutAfter: 100_000}, two, 2, 400_000},
		{"changed, ignores If-Range", source{versions: [][]byte{one, two}, etags: []string{`"1"`, `"2"`}, cuts: 1, cutAfter: 100_000, rude: true}, two, 3, 600_000},
		{"shorter than before, ignores If-Range", source{versions: [][]byte{one, two[:200_000]}, etags: []string{`"1"`, `"1"`}, cuts: 1, cutAfter: 100_000, rude: true}, two[:200_000], 3, 400_000},
		{"no ranges", source{versions: [][]byte{one}, etags: []string{`"1"`}, cuts: 1, cutAfter: 100_000, noRanges: true}, one, 2, 400_000},
		{"no validator", source{versions: [][]byte{one, two}, etags: []string{""}, cuts: 1, cutAfter: 100_000, rude: true}, two, 2, 400_000},
		{"weak validator", source{versions: [][]byte{one, two}, etags: []string{`W/"1"`}, cuts: 1, cutAfter: 100_000, rude: true}, two, 2, 400_000},
	}
	for i := range cases {
		c := &cases[i]
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(&c.source)
			defer server.Close()
			blobs, err := blob.Open(t.Context(), t.TempDir())
			require.NoError(t, err)
			defer blobs.Close()
			client := server.Client()
			info, err := worker.FetchAudio(t.Context(), client, blobs, server.URL, "audio/x", worker.FetchLimits{Min: 1, Max: 1 << 20, Resumes: 5, Pause: time.Millisecond, Stall: time.Minute})
			require.NoError(t, err)
			r, err := blobs.Open(t.Context(), "audio/x")
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			r.Close()
			require.NoError(t, err)
			assert.True(t, bytes.Equal(c.want, got), "one version, whole")
			sum := md5.Sum(c.want)
			assert.Equal(t, blob.Info{Key: "audio/x", Size: int64(len(c.want)), MD5: hex.EncodeToString(sum[:])}, info)
			assert.Equal(t, c.requests, c.source.requests.Load())
			assert.LessOrEqual(t, c.source.served.Load(), c.served)
			t.Logf("T31: %s: %d requests, %d bytes served for %d kept", c.name, c.source.requests.Load(), c.source.served.Load(), len(got))
		})
	}
}

func TestFetchErrors(t *testing.T) {
	blobs, err := blob.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer blobs.Close()
	handler := http.NotFound
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) }))
	defer server.Close()
	limits := worker.FetchLimits{Min: 10, Max: 1000, Resumes: 2, Pause: time.Millisecond, Stall: 50 * time.Millisecond}
	fetch := func(client safehttp.Doer) error {
		_, err := worker.FetchAudio(t.Context(), client, blobs, server.URL, "audio/x", limits)
		require.NoError(t, blobs.List(t.Context(), "", func(o blob.Object) error { return fmt.Errorf("%s was not deleted", o.Key) }))
		require.Error(t, err)
		return err
	}
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for code, permanent := range map[int]bool{400: true, 401: true, 403: true, 404: true, 410: true, 408: false, 425: false, 429: false, 500: false, 502: false, 503: false, 204: true} {
		handler = status(code)
		err := fetch(server.Client())
		require.ErrorIs(t, err, worker.ErrSourceStatus)
		assert.Equal(t, permanent, spec.IsPermanent(err), "%d", code)
	}
	handler = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 9)) }
	err = fetch(server.Client())
	require.ErrorIs(t, err, worker.ErrSourceSize)
	assert.True(t, spec.IsPermanent(err))
	handler = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1001)) }
	require.ErrorIs(t, fetch(server.Client()), worker.ErrSourceSize)
	handler = func(w http.ResponseWriter, _ *http.Request) { // sends no length and never ends
		for range 100 {
			_, _ = w.Write(make([]byte, 100))
			w.(http.Flusher).Flush()
		}
	}
	require.ErrorIs(t, fetch(server.Client()), worker.ErrSourceSize)
	handler = func(w http.ResponseWriter, r *http.Request) { // begins and falls silent
		_, _ = w.Write(make([]byte, 100))
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	}
	err = fetch(server.Client())
	assert.Contains(t, err.Error(), "silent")
	assert.False(t, spec.IsPermanent(err))
	err = fetch(taskstest.DoerFunc(func(*http.Request) (*http.Response, error) {
		return nil, spec.Permanent(errors.New("address is not public"))
	}))
	assert.True(t, spec.IsPermanent(err))
	err = fetch(taskstest.DoerFunc(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	}))
	assert.False(t, spec.IsPermanent(err))
}

// TestDownloadIsRetriedAfterAnOutage fetches, retries an outage of the source,
// and shows size and MD5 once the audio is stored.
func TestDownloadIsRetriedAfterAnOutage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d, func(c *tasks.Config) {
			c.RetryDelays = []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
		})
		data := bytes.Repeat([]byte("a"), 2000)
		var requests atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write(data)
		}))
		defer server.Close()
		task := f.Add(func(r *tasks.Request) { r.URL = server.URL + "/a.wav" })
		assert.Nil(t, task.AudioSize)
		assert.Equal(t, tasks.SourceURL, task.AudioSourceType)
		stopFetcher := f.StartFetcher(worker.FetcherConfig{HTTP: server.Client(), MaxBytes: 5000})
		stop := f.Start(1, worker.Config{Engine: taskstest.Quick})
		done := f.WaitFor(task.ID)
		stop()
		stopFetcher()
		require.Equal(t, tasks.StatusDone, done.Status)
		assert.EqualValues(t, 2000, *done.AudioSize)
		sum := md5.Sum(data)
		assert.Equal(t, hex.EncodeToString(sum[:]), *done.AudioMD5)
		assert.EqualValues(t, 3, requests.Load())
		f.Exact()
	})
}

// TestCheckpointsStayWithTheirModels runs attempts of one task on workers with
// different model sets: no attempt sees the checkpoints of the other set. It
// covers T30 of test/README.md.
func TestCheckpointsStayWithTheirModels(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) { c.RetryDelays = []time.Duration{0, 0, 0} })
	task := f.Add(nil)
	seen := map[string][]string{}
	for i, set := range []string{"models-1", "models-2", "models-1", "models-2"} {
		w, err := worker.New(f.Service.Runs, worker.Config{ID: set, Engine: setEngine{set, func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
			data, err := job.Checkpoints.Load(ctx, "vad")
			if err != nil {
				return tasks.Outcome{}, err
			}
			seen[set] = append(seen[set], string(data))
			if err := job.Checkpoints.Save(ctx, "vad", []byte("work of "+set)); err != nil {
				return tasks.Outcome{}, err
			}
			if i < 3 {
				return tasks.Outcome{}, errors.New("trouble after the checkpoint")
			}
			return tasks.Outcome{Seconds: 1}, nil
		}}})
		require.NoError(t, err)
		c, err := f.Next(t.Context(), set, set)
		require.NoError(t, err)
		require.NotNil(t, c)
		run, cancel := context.WithCancelCause(t.Context())
		require.NoError(t, w.Work(t.Context(), run, cancel, c))
		cancel(nil)
	}
	assert.Equal(t, tasks.StatusDone, f.Row(task.ID).Status)
	assert.Equal(t, map[string][]string{"models-1": {"", "work of models-1"}, "models-2": {"", "work of models-2"}}, seen)
	assert.Len(t, f.Files(), 1, "checkpoints are deleted at the task's end")
	t.Logf("T30: 4 attempts on 2 model sets: each saw its own checkpoints (2 of 2) and never the other's (0 of 2)")
}

type setEngine struct {
	set string
	run taskstest.EngineFunc
}

func (e setEngine) Run(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
	return e.run(ctx, job)
}
func (e setEngine) ModelSet() string { return e.set }
