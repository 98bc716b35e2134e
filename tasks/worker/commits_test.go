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

// TestATaskTakesFewCommits counts the transactions that write while 40 uploads are accepted, worked on and cleaned up after,
// those of the worker's heartbeat among them.
func TestATaskTakesFewCommits(t *testing.T) {
	const n = 40
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			var writes atomic.Int64
			f := taskstest.New(t, open(t, db.Options{Observe: func(op string, _ time.Duration, _ error) {
				if op == "write" {
					writes.Add(1)
				}
			}}))
			begun := writes.Load()
			var ids []string
			for range n {
				ids = append(ids, f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = f.Audio("audio"), 61.5 }).ID)
			}
			stop := f.Start(1, worker.Config{Engine: taskstest.Quick, Prober: prober(61.5)})
			for _, id := range ids {
				require.Equal(t, tasks.StatusDone, f.WaitFor(id).Status)
			}
			stop()
			assert.Len(t, f.Files(), n, "nothing but the results is left")
			require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
			assert.Zero(t, f.Count("SELECT COUNT(*) FROM doomed_blobs"))
			commits := float64(writes.Load()-begun) / n
			assert.LessOrEqual(t, commits, 4.0)
			t.Logf("%.2f commits a task", commits)
		})
	}
}
