package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/internal/tasks/taskstest"
	"github.com/otograph/otograph/internal/tasks/worker"
)

// TestMaintainerCleansUp runs the housekeeping as the service does.
func TestMaintainerCleansUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		doomed := f.Audio("doomed")
		f.Exec("INSERT INTO doomed_blobs (key, due_at) VALUES ($1, 0)", doomed.Key)
		f.Exec("INSERT INTO idempotency (account_id, key, body_hash, answer, created_at) VALUES ($1, 'old', '', '', 0)", f.Account)
		task := f.Add(nil)
		taken := f.Take() // by "w", which has no heartbeat and never had one
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{DeadAfter: 300 * time.Millisecond, Interval: 50 * time.Millisecond, Cleanup: time.Second}).Run(ctx)
		}()
		require.Eventually(t, func() bool {
			return f.Count("SELECT COUNT(*) FROM doomed_blobs") == 0 && f.Count("SELECT COUNT(*) FROM idempotency") == 0 &&
				f.Count("SELECT COUNT(*) FROM chores WHERE name = 'cleanup' AND holder IS NULL AND due_at > 0") > 0 &&
				f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'queued'") == 1
		}, 30*time.Second, 20*time.Millisecond)
		cancel()
		require.NoError(t, <-done)
		assert.Equal(t, []string{taken.Blob}, f.Files())
		assert.Equal(t, tasks.StatusProcessing, f.Row(task.ID).Status)
		f.Exact()
	})
}

// TestF7CleanupListsNoFiles: what is due for deletion stands in a table. The clean-up asks the file store for nothing but
// the checkpoints of tasks that have ended.
func TestF7CleanupListsNoFiles(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	var ended []string
	for range 5 {
		f.Add(nil)
		c := f.Take()
		require.NoError(t, f.Release(t.Context(), c, tasks.EndPermanent, "not audio"))
		ended = append(ended, tasks.CheckpointPrefix(c.ID))
	}
	due := f.Audio("due")
	f.Exec("INSERT INTO doomed_blobs (key, due_at) VALUES ($1, 0)", due.Key)
	later := f.Audio("due later")
	f.Exec("INSERT INTO doomed_blobs (key, due_at) VALUES ($1, $2)", later.Key, db.Micros(time.Now().Add(time.Hour)))
	for _, key := range ended {
		f.Exec("INSERT INTO doomed_blobs (key, due_at) VALUES ($1, 0) ON CONFLICT DO NOTHING", key)
	}
	var mu sync.Mutex
	var listed []string
	f.Blobs().Inject(func(op, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "list" {
			listed = append(listed, key)
		}
		return nil
	})
	require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
	f.Blobs().Inject(nil)
	assert.Subset(t, ended, listed)
	assert.Equal(t, []string{later.Key}, f.Files())
	assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM doomed_blobs"))
}

// TestResultOf100000Words stores and reads a result of 100,000 words.
// It covers T33 of test/README.md.
func TestResultOf100000Words(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	var big bytes.Buffer
	big.WriteString(`{"segments":[{"words":[`)
	for i := range 100_000 {
		if i > 0 {
			big.WriteByte(',')
		}
		fmt.Fprintf(&big, `{"word":"word%d","start":%d.25,"end":%d.5,"probability":0.%d}`, i%977, i, i, i%89+10)
	}
	big.WriteString(`]}]}`)
	require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: big.Bytes(), Tier: "standard", Seconds: 18000}))
	size := int64(big.Len())
	big = bytes.Buffer{}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := f.Result(t.Context(), f.Account, task.ID)
	require.NoError(t, err)
	n, err := r.WriteTo(io.Discard)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	runtime.ReadMemStats(&after)
	assert.Greater(t, n, size)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(n), "the result was not held in memory")
	assert.Len(t, f.ReadResult(task.ID)["segments"].([]any)[0].(map[string]any)["words"], 100_000)
	t.Logf("T33: result of %.1f MB streamed with %.1f MB allocated in all", float64(n)/1e6, float64(after.TotalAlloc-before.TotalAlloc)/1e6)
}

// TestResultsOfEngines checks what is made of what engines return.
func TestResultsOfEngines(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) { c.RetryDelays = []time.Duration{} })
	for result, ok := range map[string]bool{`{}`: true, ` { "billing" : 1, "task_id":2 } `: true, `{"a":[1, {"b":null}],"audio_duration":7,"c":"<&>"}`: true, `[]`: false, `null`: false, `{"a":}`: false, ``: false} {
		task := f.Add(nil)
		stop := f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(context.Context, worker.Job) (tasks.Outcome, error) {
			return tasks.Outcome{Result: json.RawMessage(result), Seconds: 60.004}, nil
		})})
		done := f.WaitFor(task.ID)
		stop()
		if !ok {
			assert.Equal(t, tasks.StatusAbandoned, done.Status, result)
			assert.Equal(t, "internal error", *done.ErrorMessage)
			continue
		}
		m := f.ReadResult(task.ID)
		assert.Equal(t, 60.004, m["audio_duration"], "as exactly as it is billed")
		assert.Equal(t, 2.0, m["billing"].(map[string]any)["billable_minutes"])
		assert.Equal(t, task.ID, m["task_id"])
		assert.IsType(t, map[string]any{}, m["billing"])
	}
	task := f.Add(nil)
	stop := f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(context.Context, worker.Job) (tasks.Outcome, error) { panic("nil map") })})
	done := f.WaitFor(task.ID)
	stop()
	assert.Contains(t, *done.ErrorMessage, "panicked")
	st, err := f.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, st.TasksByFinalState[tasks.StatusDone])
	assert.Equal(t, 5, st.TasksByFinalState[tasks.StatusAbandoned])
}

func TestStats(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now()
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		for range 3 {
			f.Add(nil)
		}
		f.Add(func(r *tasks.Request) { r.Batch = true })
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndRecoverable, "x"))
		f.Take()
		clock = clock.Add(3 * time.Second)
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, tasks.Lane{Waiting: 1, Delayed: 1, Running: 1, Oldest: 3 * time.Second}, st.Tasks)
		assert.Equal(t, tasks.Lane{Waiting: 1, Oldest: 3 * time.Second}, st.Batch)
	})
}

// TestWaitHonoursItsContext waits for a task that nobody works on.
func TestWaitHonoursItsContext(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := f.Wait(ctx, f.Account, task.ID)
	require.True(t, errors.Is(err, context.DeadlineExceeded))
}
