package queue_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestHeartbeatsCarryProgress checks that a worker's progress is written with
// its heartbeat, without another transaction.
func TestHeartbeatsCarryProgress(t *testing.T) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			var writes atomic.Int64
			f := taskstest.New(t, open(t, db.Options{Observe: func(op string, _ time.Duration, _ error) {
				if op == "write" {
					writes.Add(1)
				}
			}}))
			before := writes.Load()
			told := &queue.Progress{TaskID: "a task", Stage: "transcribe", Fraction: 0.25}
			stop, err := f.Queue().Enter(t.Context(), queue.Member{ID: "w", Kind: queue.Worker, Progress: func() *queue.Progress { return told }}, time.Hour, nil)
			require.NoError(t, err)
			defer stop()
			assert.EqualValues(t, 1, writes.Load()-before)
			assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM workers WHERE id = 'w' AND task_id = 'a task' AND stage = 'transcribe' AND fraction = 0.25 AND beats = 1"))
		})
	}
}
