package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// slowSource sends a byte at intervals, forever, and counts its connections by
// host name.
type slowSource struct {
	*httptest.Server
	every time.Duration

	mu         sync.Mutex
	open, most map[string]int
}

func newSlowSource(t testing.TB, every time.Duration) *slowSource {
	s := &slowSource{every: every, open: map[string]int{}, most: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *slowSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.open[r.Host]++
	s.most[r.Host] = max(s.most[r.Host], s.open[r.Host])
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open[r.Host]--
	}()
	w.Header().Set("Content-Length", "100000")
	for {
		if _, err := w.Write([]byte("a")); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(s.every):
		}
	}
}

// connections returns the number of all open connections, and the most that one
// host had at a time.
func (s *slowSource) connections() (open, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for host, n := range s.open {
		open += n
		most = max(most, s.most[host])
	}
	return open, most
}

// anyHost sends the request to the source, for any host in its URL.
func (s *slowSource) anyHost(r *http.Request) (*http.Response, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Host, r.URL.Host = r.URL.Host, u.Host
	return http.DefaultTransport.RoundTrip(r)
}

// TestSlowSourcesBlockNoOthers: sources that send a byte now and then occupy
// neither the only worker nor the slots of other accounts; their tasks fail
// because of the minimum rate.
func TestSlowSourcesBlockNoOthers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d, func(c *tasks.Config) { c.RetryDelays = []time.Duration{} })
		slow := newSlowSource(t, 20*time.Millisecond)
		good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 5000)) }))
		t.Cleanup(good.Close)
		other := f.NewAccount("other", 100*billing.Unit)
		var trickling []string
		for i := range 40 {
			trickling = append(trickling, f.Add(func(r *tasks.Request) { r.URL = fmt.Sprintf("http://host-%d.example/x.wav", i) }).ID)
		}
		f.StartFetcher(worker.FetcherConfig{AtOnce: 8, PerAccount: 3, Slow: 8 * time.Second, Heartbeat: 200 * time.Millisecond, HTTP: taskstest.DoerFunc(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "good.example" {
				u, _ := url.Parse(good.URL)
				r = r.Clone(r.Context())
				r.URL.Host = u.Host
				return http.DefaultTransport.RoundTrip(r)
			}
			return slow.anyHost(r)
		})})
		f.Start(1, worker.Config{Engine: taskstest.Quick})
		require.Eventually(t, func() bool { open, _ := slow.connections(); return open == 3 }, 10*time.Second, 5*time.Millisecond, "an account gets its share of the slots")

		upload := f.Add(func(r *tasks.Request) { r.Account, r.Audio = other, f.Audio("audio") })
		byURL := f.Add(func(r *tasks.Request) { r.Account, r.URL = other, "http://good.example/a.wav" })
		for _, id := range []string{upload.ID, byURL.ID} {
			require.Equal(t, tasks.StatusDone, f.WaitFor(id).Status)
		}
		open, most := slow.connections()
		assert.Equal(t, 3, open, "the trickling sources are still connected")
		assert.Equal(t, 1, most)
		failed := f.WaitFor(trickling[0])
		assert.Equal(t, tasks.StatusAbandoned, failed.Status)
		assert.Contains(t, *failed.ErrorMessage, "too slow")
		_, err := f.Cancel(t.Context(), trickling[39])
		require.NoError(t, err, "a waiting task can be canceled")
		f.Exact()
	})
}

// TestAnySourceStatusEndsTheTask: a source's status of any bytes is stored, also
// by PostgreSQL, which refuses texts that are not UTF-8.
func TestAnySourceStatusEndsTheTask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		stop := f.StartFetcher(worker.FetcherConfig{Heartbeat: 50 * time.Millisecond, HTTP: taskstest.DoerFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNotFound, Status: "404 \xff\x00", Header: http.Header{}, Body: http.NoBody}, nil
		})})
		defer stop()
		failed := f.WaitFor(f.Add(func(r *tasks.Request) { r.URL = "http://odd.example/a.wav" }).ID)
		assert.Equal(t, tasks.StatusFailed, failed.Status)
		assert.Contains(t, *failed.ErrorMessage, "404 \uFFFD\uFFFD")
		f.Exact()
	})
}

// TestCanceledDownloadEnds: the fetcher closes the connection to a source when
// its task is canceled.
func TestCanceledDownloadEnds(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	slow := newSlowSource(t, 10*time.Millisecond)
	task := f.Add(func(r *tasks.Request) { r.URL = slow.URL + "/x.wav" })
	f.StartFetcher(worker.FetcherConfig{HTTP: slow.Client(), Heartbeat: 20 * time.Millisecond})
	open := func(n int) func() bool { return func() bool { now, _ := slow.connections(); return now == n } }
	require.Eventually(t, open(1), 10*time.Second, 5*time.Millisecond)
	require.ErrorIs(t, f.Delete(t.Context(), f.Account, task.ID), tasks.ErrProcessing, "as specified")
	_, err := f.Cancel(t.Context(), task.ID)
	require.NoError(t, err)
	require.Eventually(t, open(0), 10*time.Second, 5*time.Millisecond, "the download ends")
	require.NoError(t, f.Delete(t.Context(), f.Account, task.ID))
	f.Tidy()
	assert.Empty(t, f.Files())
	f.Exact()
}

// TestHostsAndAccountsShareDownloads: one host gets no more than its share of
// the slots, and a fetcher stops fetching for an account whose tasks already
// wait for a worker.
func TestHostsAndAccountsShareDownloads(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		slow := newSlowSource(t, 10*time.Millisecond)
		for i := range 6 {
			account := f.NewAccount(fmt.Sprintf("account %d", i), 100*billing.Unit)
			f.Add(func(r *tasks.Request) { r.Account, r.URL = account, "http://one.example/x.wav" })
		}
		stop := f.StartFetcher(worker.FetcherConfig{HTTP: taskstest.DoerFunc(slow.anyHost), PerHost: 2, Grace: time.Millisecond})
		require.Eventually(t, func() bool { open, _ := slow.connections(); return open == 2 }, 10*time.Second, 5*time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		_, most := slow.connections()
		assert.Equal(t, 2, most)
		stop()
		assert.Equal(t, 6, f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'queued' AND lane = 'fetch'"), "downloads are handed back")
		assert.Zero(t, f.Count("SELECT SUM(failures) FROM tasks"))
		f.Exact()

		f.Exec("UPDATE lanes SET paused = TRUE WHERE lane = 'fetch'")
		none, err := f.NextFetch(t.Context(), "w", queue.Busy{Ahead: 1})
		require.NoError(t, err)
		assert.Nil(t, none, "nothing is claimed from a paused lane")
		f.Exec("UPDATE lanes SET paused = FALSE WHERE lane = 'fetch'")
		f.Add(nil) // waits for a worker, in the next task's account
		own := f.Add(func(r *tasks.Request) { r.URL = "http://two.example/x.wav" })
		batch := f.Add(func(r *tasks.Request) { r.URL, r.Batch = "http://two.example/y.wav", true })
		c, err := f.NextFetch(t.Context(), "w", queue.Busy{Ahead: 1, Hosts: []string{"one.example"}})
		require.NoError(t, err)
		require.NotNil(t, c)
		assert.Equal(t, batch.ID, c.ID, "no task waits in the lane of this one")
		c, err = f.NextFetch(t.Context(), "w", queue.Busy{Ahead: 2, Hosts: []string{"one.example"}})
		require.NoError(t, err)
		require.NotNil(t, c)
		assert.Equal(t, own.ID, c.ID)
	})
}

// TestOnlyRecordingsAreFetched: a file that can't be a recording is refused
// after its first 64 KiB.
func TestOnlyRecordingsAreFetched(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000000")
		for {
			n, err := w.Write(make([]byte, 32<<10))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	defer server.Close()
	heads := make(chan int, 10)
	f.StartFetcher(worker.FetcherConfig{HTTP: server.Client(), Check: func(name string, head []byte) error {
		heads <- len(head)
		return spec.Permanent(fmt.Errorf("%s is no recording", name))
	}})
	task := f.Add(func(r *tasks.Request) { r.URL = server.URL + "/x.wav" })
	ended := f.WaitFor(task.ID)
	assert.Equal(t, tasks.StatusFailed, ended.Status)
	assert.Contains(t, *ended.ErrorMessage, "speech.wav is no recording")
	assert.Equal(t, 64<<10, <-heads)
	assert.Empty(t, heads, "judged once")
	assert.Less(t, sent.Load(), int64(100<<20), "at most the connection's buffers, not the whole file")
	assert.Empty(t, f.Orphans())
	t.Logf("%d of 1000000000 bytes were sent", sent.Load())
}

// TestDownloadRate: a download below its minimum rate is cut off, but a steady
// source on a slow line is not.
func TestDownloadRate(t *testing.T) {
	blobs, err := blob.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer blobs.Close()
	const size = 10_000
	serve := func(chunk int, pause time.Duration) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", fmt.Sprint(size))
			for sent := 0; sent < size && r.Context().Err() == nil; sent += chunk {
				_, _ = w.Write(make([]byte, min(chunk, size-sent)))
				w.(http.Flusher).Flush()
				time.Sleep(pause)
			}
		}))
		t.Cleanup(server.Close)
		return server
	}
	limits := worker.FetchLimits{Min: 1, Max: 1 << 20, Resumes: 5, Pause: time.Millisecond, Stall: time.Minute, Grace: 400 * time.Millisecond, Rate: 1000}
	steady, slow := serve(200, 20*time.Millisecond), serve(1, 20*time.Millisecond) // 10,000 and 50 bytes a second
	info, err := worker.FetchAudio(t.Context(), steady.Client(), blobs, steady.URL, "audio/steady", limits)
	require.NoError(t, err)
	assert.EqualValues(t, size, info.Size)
	_, err = worker.FetchAudio(t.Context(), slow.Client(), blobs, slow.URL, "audio/slow", limits)
	require.ErrorIs(t, err, worker.ErrSourceSlow)
	assert.False(t, spec.IsPermanent(err), "it may be faster later")
	limited, done := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("time is up"))
	defer done()
	_, err = worker.FetchAudio(limited, steady.Client(), blobs, steady.URL, "audio/late", limits)
	require.ErrorContains(t, err, "time is up")
}

// TestLostAudioIsFetchedAgain: if a worker does not find the audio of a URL
// task, it is downloaded again.
func TestLostAudioIsFetchedAgain(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write(make([]byte, 5000))
	}))
	defer server.Close()
	task := f.Add(func(r *tasks.Request) { r.URL = server.URL + "/x.wav" })
	f.StartFetcher(worker.FetcherConfig{HTTP: server.Client()})
	require.Eventually(t, func() bool {
		return f.Count("SELECT COUNT(*) FROM tasks WHERE lane = 'tasks' AND phase = 'queued'") == 1
	}, 10*time.Second, 5*time.Millisecond)
	for _, key := range f.Files() {
		require.NoError(t, f.Config.Blobs.Delete(t.Context(), key))
	}
	f.Start(1, worker.Config{Engine: taskstest.Quick})
	require.Equal(t, tasks.StatusDone, f.WaitFor(task.ID).Status)
	assert.EqualValues(t, 2, requests.Load())
	assert.Zero(t, f.Count("SELECT failures FROM tasks"))
	f.Exact()
}
