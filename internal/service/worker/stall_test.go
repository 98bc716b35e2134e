package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestStalledEngineCostsAttemptsOnly runs engines that report progress for
// longer than the limit without progress, and then hang: one never returns, one
// returns when its context ends. Each attempt counts, and the task fails by the
// service's fault, without a charge.
func TestStalledEngineCostsAttemptsOnly(t *testing.T) {
	for name, returns := range map[string]bool{"never returns": false, "returns when canceled": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := taskstest.New(t, dbtest.SQLite(t, db.Options{MaxConns: 4}))
				released := make(chan struct{})
				defer close(released)
				var worked atomic.Int64 // a hung engine is abandoned
				w, err := worker.New(f.Service.Runs, worker.Config{ID: "w", Engine: taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
					if err := job.Decoded(600); err != nil {
						return tasks.Outcome{}, err
					}
					for _, report := range []func(){func() { job.Progress("vad", 0.1) }, job.Working, job.Working} {
						time.Sleep(worker.DefaultStall)
						report()
						worked.Add(1)
					}
					if returns {
						<-ctx.Done()
						return tasks.Outcome{}, ctx.Err()
					}
					<-released
					return tasks.Outcome{}, nil
				})})
				require.NoError(t, err)
				task := f.Add(nil)
				for attempt := 1; ; attempt++ {
					c, err := f.Next(t.Context(), "w", "m")
					require.NoError(t, err)
					require.NotNil(t, c)
					run, cancel := context.WithCancelCause(t.Context())
					err = w.Work(t.Context(), run, cancel, c)
					cancel(nil)
					if returns {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, worker.ErrHung)
					}
					assert.EqualValues(t, 3*attempt, worked.Load(), "the reports kept the run alive")
					assert.Equal(t, attempt, f.Count("SELECT failures FROM tasks"))
					row := f.Row(task.ID)
					assert.Equal(t, "a failure of the service's engine: no progress for 21m0s; nothing is charged", *row.ErrorMessage)
					if row.Final() {
						assert.Equal(t, tasks.StatusAbandoned, row.Status)
						assert.Equal(t, 4, attempt)
						break
					}
					time.Sleep(10 * time.Minute) // longer than any delay
				}
				assert.Zero(t, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
				f.Exact()
			})
		})
	}
}
