package worker_test

import (
	"context"
	"slices"
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

// TestIdleWorkerWakes creates tasks for a worker that checks an empty queue
// only once an hour: a new task, a retry whose delay is over, and a task that
// another worker hands back each wake it.
func TestIdleWorkerWakes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d, func(c *tasks.Config) { c.RetryDelays = []time.Duration{200 * time.Millisecond} })
		began := make(chan time.Time, 100)
		stop := f.Start(1, worker.Config{Poll: time.Hour, Engine: taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
			began <- time.Now()
			return taskstest.Quick(ctx, job)
		})})
		defer stop()
		var waits []time.Duration
		for range 6 {
			time.Sleep(30 * time.Millisecond) // until the worker is idle
			created := time.Now()
			task := f.Add(nil)
			waits = append(waits, (<-began).Sub(created))
			require.Equal(t, tasks.StatusDone, f.WaitFor(task.ID).Status)
		}
		stop()

		retried, handed := f.Add(nil), f.Add(nil)
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndRecoverable, "x"))
		other := f.Take()
		stop = f.Start(1, worker.Config{Poll: time.Hour, Engine: taskstest.Quick})
		require.Equal(t, tasks.StatusDone, f.WaitFor(retried.ID).Status, "the end of its delay")
		require.NoError(t, f.Release(t.Context(), other, tasks.EndHandedBack, ""))
		require.Equal(t, tasks.StatusDone, f.WaitFor(handed.ID).Status)
		stop()
		f.Exact()
		slices.Sort(waits)
		t.Logf("an idle worker on %s began %d new tasks, the median after %.1f ms, the slowest after %.1f ms", d.Dialect(), len(waits), waits[len(waits)/2].Seconds()*1000, waits[len(waits)-1].Seconds()*1000)
	})
}

// TestUnconfirmedClaimIsHandedBack loses the response to a claim's commit: the
// worker continues, and the task still runs, uncounted.
func TestUnconfirmedClaimIsHandedBack(t *testing.T) {
	f, b := brittle(t)
	task := f.Add(nil)
	commits := 0
	b.set(func(op string) (bool, bool) {
		if op == "commit" {
			commits++
		}
		return op == "commit" && commits == 2, true // the second commit is the claim; the first is the heartbeat
	})
	stop := f.Start(1, worker.Config{Engine: taskstest.Quick, Heartbeat: time.Hour})
	assert.Equal(t, tasks.StatusDone, f.WaitFor(task.ID).Status)
	stop()
	assert.Equal(t, 2, f.Count("SELECT attempt FROM tasks"), "claimed twice")
	assert.Zero(t, f.Count("SELECT failures + interruptions FROM tasks"))
	f.Exact()
}

// TestWorkerEndsWithItsService: a worker hands its task back when the service
// that started its process has ended, regardless of its grace.
func TestWorkerEndsWithItsService(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		gone, lose := context.WithCancel(t.Context())
		began := make(chan struct{})
		stop := f.Start(1, worker.Config{Gone: gone, Grace: time.Hour, Engine: taskstest.EngineFunc(func(ctx context.Context, _ worker.Job) (tasks.Outcome, error) {
			close(began)
			<-ctx.Done()
			return tasks.Outcome{}, ctx.Err()
		})})
		task := f.Add(nil)
		<-began
		lose()
		stop() // waits for the worker
		assert.Equal(t, tasks.StatusProcessing, f.Row(task.ID).Status)
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'"))
		assert.Zero(t, f.Count("SELECT SUM(failures + interruptions) FROM tasks"), "handed back uncounted")
	})
}
