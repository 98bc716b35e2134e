package worker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/otograph/otograph/tasks"
	"github.com/otograph/otograph/tasks/taskstest"
	"github.com/otograph/otograph/tasks/worker"
)

// TestATaskTakesFewCommits counts the transactions that write while 40 tasks are accepted, worked on and cleaned up after.
// Tasks follow one another: one that finds an idle worker, or an idle fetcher, takes one more for each.
func TestATaskTakesFewCommits(t *testing.T) {
	const n = 40
	upload := func(f *taskstest.Fixture, r *tasks.Request) { r.Audio, r.Seconds = f.Audio("audio"), 61.5 }
	url := func(_ *taskstest.Fixture, r *tasks.Request) { r.URL = "https://source.example/a.wav" }
	for _, c := range []struct {
		name    string
		open    func(testing.TB, db.Options) *db.DB
		request func(*taskstest.Fixture, *tasks.Request)
		most    float64
	}{
		{"upload/sqlite", dbtest.SQLite, upload, 3},
		{"upload/postgres", dbtest.Postgres, upload, 3},
		{"URL/sqlite", dbtest.SQLite, url, 4},
		{"URL/postgres", dbtest.Postgres, url, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			var writes atomic.Int64
			f := taskstest.New(t, c.open(t, db.Options{Observe: func(op string, _ time.Duration, _ error) {
				if op == "write" {
					writes.Add(1)
				}
			}}))
			begun := writes.Load()
			var ids []string
			for range n {
				ids = append(ids, f.Add(func(r *tasks.Request) { c.request(f, r) }).ID)
			}
			// Heartbeats come with time, not with tasks.
			fetched := f.StartFetcher(worker.FetcherConfig{HTTP: minuteSource, Prober: prober(61.5), Heartbeat: time.Hour})
			require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM tasks WHERE lane = 'tasks'") == n }, time.Minute, 5*time.Millisecond)
			stop := f.Start(1, worker.Config{Engine: taskstest.Quick, Prober: prober(61.5), Heartbeat: time.Hour})
			for _, id := range ids {
				require.Equal(t, tasks.StatusDone, f.WaitFor(id).Status)
			}
			stop()
			fetched()
			assert.Len(t, f.Files(), n, "nothing but the results is left")
			require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
			assert.Zero(t, f.Count("SELECT COUNT(*) FROM doomed_blobs"))
			commits := float64(writes.Load()-begun) / n
			assert.LessOrEqual(t, commits, c.most)
			t.Logf("%.2f commits a task", commits)
			f.Exact()
		})
	}
}
