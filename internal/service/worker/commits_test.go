package worker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestCommitsPerTask counts write transactions while tasks are accepted, run
// and cleaned up: of 40 consecutive tasks, 16 in the short form, with the writes
// of the fetcher, the worker and the clean-up, and of a quarter as many that come
// one at a time to an idle fetcher and an idle worker.
func TestCommitsPerTask(t *testing.T) {
	upload := func(f *taskstest.Fixture, r *tasks.Request) { r.Audio, r.Seconds = f.Audio("audio"), 61.5 }
	url := func(_ *taskstest.Fixture, r *tasks.Request) { r.URL = "https://source.example/a.wav" }
	for _, c := range []struct {
		name    string
		request func(*taskstest.Fixture, *tasks.Request)
		alone   float64
	}{{"upload", upload, 3}, {"URL", url, 5}} {
		for _, store := range []struct {
			name string
			open func(testing.TB, db.Options) *db.DB
		}{{"sqlite", dbtest.SQLite}, {"postgres", dbtest.Postgres}} {
			t.Run(c.name+"/"+store.name, func(t *testing.T) {
				var writes atomic.Int64
				f := taskstest.New(t, store.open(t, db.Options{Observe: func(op string, _ time.Duration, _ error) {
					if op == "write" {
						writes.Add(1)
					}
				}}))
				add := func() string { return f.Add(func(r *tasks.Request) { c.request(f, r) }).ID }
				n := 40
				if testing.Short() {
					n = 16
				}
				begun := writes.Load()
				inARow(f, n, add)
				assert.Len(t, f.Files(), n, "only the results are left")
				require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
				assert.Zero(t, f.Count("SELECT COUNT(*) FROM doomed_blobs"))
				commits := float64(writes.Load()-begun) / float64(n)
				assert.LessOrEqual(t, commits, c.alone+20/float64(n), "in a row, with twice the ten commits of worker and maintainer")
				alone := oneByOne(f, n/4, add, writes.Load)
				assert.Less(t, alone, c.alone+0.5, "alone, with half a commit of tolerance for one counted late")
				t.Logf("commits a task: %.2f in a row, %.2f alone", commits, alone)
				f.Exact()
			})
		}
	}
}

// fetch starts a fetcher and work starts a worker. Their heartbeats are too
// rare to be counted.
func fetch(f *taskstest.Fixture) (stop func()) {
	f.Service.Config.Prober = prober(61.5)
	return f.StartFetcher(worker.FetcherConfig{HTTP: minuteSource, Heartbeat: time.Hour})
}

func work(f *taskstest.Fixture) (stop func()) {
	return f.Start(1, worker.Config{Engine: taskstest.Quick, Prober: prober(61.5), Heartbeat: time.Hour})
}

// inARow creates n tasks before the first one is run.
func inARow(f *taskstest.Fixture, n int, add func() string) {
	f.T.Helper()
	var ids []string
	for range n {
		ids = append(ids, add())
	}
	defer fetch(f)()
	require.Eventually(f.T, func() bool { return f.Count("SELECT COUNT(*) FROM tasks WHERE lane = 'tasks'") == n }, time.Minute, 25*time.Millisecond)
	defer work(f)()
	for _, id := range ids {
		require.Equal(f.T, tasks.StatusDone, f.WaitFor(id).Status)
	}
}

// oneByOne adds each of n tasks when the previous one is done, and returns the
// number of transactions per task.
func oneByOne(f *taskstest.Fixture, n int, add func() string, writes func() int64) float64 {
	f.T.Helper()
	defer fetch(f)()
	defer work(f)()
	f.WaitFor(add()) // fetcher and worker are running
	begun := writes()
	for range n {
		require.Equal(f.T, tasks.StatusDone, f.WaitFor(add()).Status)
	}
	return float64(writes()-begun) / float64(n)
}
