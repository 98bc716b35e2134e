package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMaintainerCleansUp runs the housekeeping as the service does.
func TestMaintainerCleansUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		doomed := f.audio("doomed")
		f.exec("INSERT INTO doomed_blobs (key, due_at) VALUES ($1, 0)", doomed.Key)
		f.exec("INSERT INTO idempotency (account_id, key, body_hash, answer, created_at) VALUES ($1, 'old', '', '', 0)", f.account)
		task := f.create(nil)
		taken := f.take() // by "w", which has no heartbeat and never had one
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- NewMaintainer(f.Service, MaintainerConfig{DeadAfter: 300 * time.Millisecond, Interval: 50 * time.Millisecond, Cleanup: time.Second}).Run(ctx)
		}()
		require.Eventually(t, func() bool {
			return f.count("SELECT COUNT(*) FROM doomed_blobs") == 0 && f.count("SELECT COUNT(*) FROM idempotency") == 0 &&
				f.count("SELECT COUNT(*) FROM chores WHERE name = 'cleanup' AND holder IS NULL AND due_at > 0") > 0 &&
				f.count("SELECT COUNT(*) FROM tasks WHERE phase = 'queued'") == 1
		}, 30*time.Second, 20*time.Millisecond)
		cancel()
		require.NoError(t, <-done)
		assert.Equal(t, []string{taken.blob}, f.files())
		assert.Equal(t, StatusProcessing, f.get(task.ID).Status)
		f.exact()
	})
}

// TestSilentChildIsReplaced stops a worker (SIGSTOP) under its supervisor, which kills and replaces it.
func TestSilentChildIsReplaced(t *testing.T) {
	eachSource(t, func(t *testing.T, f *fixture) {
		task := f.create(func(r *Request) { r.Audio = f.audio("sleep 400ms x") })
		source, dir := f.source, f.dir
		v, err := NewSupervisor(f.Service, SupervisorConfig{Command: []string{"/proc/self/exe"}, N: 1, Heartbeat: 100 * time.Millisecond, Stale: 2 * time.Second, MinPause: 10 * time.Millisecond,
			Env: []string{envProcess + "=worker", envDatabase + "=" + source, envBlobs + "=" + dir, "GOMAXPROCS=2"}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- v.Run(ctx) }()
		require.Eventually(t, func() bool { return f.count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'") == 1 }, 30*time.Second, 5*time.Millisecond)
		first := v.Children()
		require.Len(t, first, 1)
		require.NoError(t, syscall.Kill(first[0], syscall.SIGSTOP))
		assert.Equal(t, StatusDone, f.wait(task.ID).Status)
		assert.Equal(t, 1, v.Restarts())
		assert.NotEqual(t, first, v.Children())
		cancel()
		require.NoError(t, <-done)
		assert.Equal(t, 1, f.count("SELECT interruptions FROM tasks"))
		assert.Zero(t, f.count("SELECT failures FROM tasks"), "not the task's fault")
		assert.Empty(t, v.Children())
		f.exact()
	})
}

// TestT33BigResult stores and reads a result of 100,000 words.
func TestT33BigResult(t *testing.T) {
	f := newFixture(t, dbtest.SQLite(t, db.Options{}))
	task := f.create(nil)
	var big bytes.Buffer
	big.WriteString(`{"segments":[{"words":[`)
	for i := range 100_000 {
		if i > 0 {
			big.WriteByte(',')
		}
		fmt.Fprintf(&big, `{"word":"word%d","start":%d.25,"end":%d.5,"probability":0.%d}`, i%977, i, i, i%89+10)
	}
	big.WriteString(`]}]}`)
	require.NoError(t, f.complete(t.Context(), f.take(), Outcome{Result: big.Bytes(), Tier: "standard", Seconds: 18000}))
	size := int64(big.Len())
	big = bytes.Buffer{}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := f.Result(t.Context(), f.account, task.ID)
	require.NoError(t, err)
	n, err := r.WriteTo(io.Discard)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	runtime.ReadMemStats(&after)
	assert.Greater(t, n, size)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(n), "the result was not held in memory")
	assert.Len(t, f.result(task.ID)["segments"].([]any)[0].(map[string]any)["words"], 100_000)
	t.Logf("T33: result of %.1f MB streamed with %.1f MB allocated in all", float64(n)/1e6, float64(after.TotalAlloc-before.TotalAlloc)/1e6)
}

// TestResultsOfEngines checks what is made of what engines return.
func TestResultsOfEngines(t *testing.T) {
	f := newFixture(t, dbtest.SQLite(t, db.Options{}), func(c *Config) { c.RetryDelays = []time.Duration{} })
	for result, ok := range map[string]bool{`{}`: true, ` { "billing" : 1, "task_id":2 } `: true, `{"a":[1, {"b":null}],"audio_duration":7,"c":"<&>"}`: true, `[]`: false, `null`: false, `{"a":}`: false, ``: false} {
		task := f.create(nil)
		stop := f.start(1, WorkerConfig{Engine: engineFunc(func(context.Context, Job) (Outcome, error) {
			return Outcome{Result: json.RawMessage(result), Seconds: 60.004}, nil
		})})
		done := f.wait(task.ID)
		stop()
		if !ok {
			assert.Equal(t, StatusAbandoned, done.Status, result)
			assert.Equal(t, "internal error", *done.ErrorMessage)
			continue
		}
		m := f.result(task.ID)
		assert.Equal(t, 60.0, m["audio_duration"])
		assert.Equal(t, task.ID, m["task_id"])
		assert.IsType(t, map[string]any{}, m["billing"])
	}
	task := f.create(nil)
	stop := f.start(1, WorkerConfig{Engine: engineFunc(func(context.Context, Job) (Outcome, error) { panic("nil map") })})
	done := f.wait(task.ID)
	stop()
	assert.Contains(t, *done.ErrorMessage, "panicked")
	st, err := f.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, st.TasksByFinalState[StatusDone])
	assert.Equal(t, 5, st.TasksByFinalState[StatusAbandoned])
	assert.Equal(t, 180.0, st.RecentAudio)
	assert.Positive(t, st.RecentWork)
}

func TestStats(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now()
		f := newFixture(t, d, func(c *Config) { c.Clock = func() time.Time { return clock } })
		for range 3 {
			f.create(nil)
		}
		f.create(func(r *Request) { r.Batch = true })
		require.NoError(t, f.release(t.Context(), f.take(), endRecoverable, "x"))
		f.take()
		clock = clock.Add(3 * time.Second)
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, Lane{Waiting: 1, Delayed: 1, Running: 1, Oldest: 3 * time.Second}, st.Tasks)
		assert.Equal(t, Lane{Waiting: 1, Oldest: 3 * time.Second}, st.Batch)
	})
}

// TestWaitHonoursItsContext waits for a task that nobody works on.
func TestWaitHonoursItsContext(t *testing.T) {
	f := newFixture(t, dbtest.SQLite(t, db.Options{}))
	task := f.create(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := f.Wait(ctx, f.account, task.ID)
	require.True(t, errors.Is(err, context.DeadlineExceeded))
}
