package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// TestMaintainerCleansUp runs the clean-up as the service does.
func TestMaintainerCleansUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		doomed := f.Audio("doomed")
		f.Exec("INSERT INTO doomed_blobs (key, due_at) VALUES ($1, 0)", doomed.Key)
		f.Exec("INSERT INTO idempotency (account_id, key, body_hash, answer, created_at) VALUES ($1, 'old', '', '', 0)", f.Account)
		task := f.Add(nil)
		taken := f.Take() // by "w", which never had a heartbeat
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

// TestCleanupListsNoFiles: files due for deletion are listed in a table. In the
// store, the clean-up lists only the checkpoints of ended tasks.
func TestCleanupListsNoFiles(t *testing.T) {
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
	f.Config.Blobs.Inject(func(op, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "list" {
			listed = append(listed, key)
		}
		return nil
	})
	require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
	f.Config.Blobs.Inject(func(string, string) error { return nil })
	assert.Subset(t, ended, listed)
	assert.Equal(t, []string{later.Key}, f.Files())
	assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM doomed_blobs"))
}

// TestResultOf100000Words stores a result of 100,000 words and reads its
// segments one after the other. It covers T33 of test/README.md.
func TestResultOf100000Words(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	big := spec.Result{Ran: spec.Capabilities{ASR: true}}
	for i := range 5000 {
		segment := spec.Segment{ID: i, Start: float64(i)}
		for j := range 20 {
			at := float64(20*i + j)
			segment.Words = append(segment.Words, spec.Word{Word: fmt.Sprint("word", j), Start: at + 0.25, End: at + 0.5, Probability: 0.5})
		}
		big.Segments = append(big.Segments, segment)
	}
	require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: big, Tier: "standard", Seconds: 18000}))
	r, err := f.Result(t.Context(), f.Account, task.ID)
	require.NoError(t, err)
	defer r.Close()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most, n := heap(), uint64(0), 0
	for segment, err := range r.Segments() {
		require.NoError(t, err)
		if !assert.Equal(t, big.Segments[n], segment) {
			return
		}
		if n++; n%1000 == 0 {
			most = max(most, heap())
		}
	}
	assert.Equal(t, 5000, n)
	assert.Less(t, most, before+1<<20, "the result was not held in memory")
}

// TestResultsOfEngines checks the stored results of engines' outcomes.
func TestResultsOfEngines(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) { c.RetryDelays = []time.Duration{} })
	for name, result := range map[string]spec.Result{
		"empty": {},
		"full": {
			Ran: spec.Capabilities{ASR: true, Diarize: true, AudioEvents: true}, Language: "de", LanguageProbability: 0.5,
			Segments:    []spec.Segment{{Text: "<&>", Speaker: "SPEAKER_0", Measures: &spec.Measures{Tokens: []int32{1}, Temperature: new(0.4), AvgLogProb: -1}}, {ID: 1}},
			VADSegments: []spec.Interval{{End: 1}}, NumSpeakers: 1, SpeakerEmbeddings: []spec.SpeakerEmbedding{{SpeakerID: "SPEAKER_0", Embedding: []float32{1}}},
			DiarizeSegments: []spec.Turn{{End: 1, Speaker: "SPEAKER_0"}}, AudioEvents: []spec.AudioEvent{{End: 1, Class: "Speech"}},
			Names: map[string]string{"SPEAKER_0": "Ann"},
		},
	} {
		task := f.Add(nil)
		stop := f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(context.Context, worker.Job) (tasks.Outcome, error) {
			return tasks.Outcome{Result: result, Seconds: 60.00004}, nil
		})})
		done := f.WaitFor(task.ID)
		stop()
		got, bill := f.ReadResult(task.ID)
		assert.EqualValues(t, 1, bill.BillableMinutes, "60.00004 s are 60.0000 s")
		result.AudioDuration, result.Stats.DecodedSeconds, result.AudioMD5 = 60, 60, *done.AudioMD5
		assert.Equal(t, &result, got, name)
	}
	impossible := f.Add(nil)
	stop := f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(context.Context, worker.Job) (tasks.Outcome, error) {
		return tasks.Outcome{Result: spec.Result{LanguageProbability: math.NaN()}, Seconds: 1}, nil
	})})
	assert.Equal(t, "internal error", *f.WaitFor(impossible.ID).ErrorMessage)
	stop()
	task := f.Add(nil)
	stop = f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(context.Context, worker.Job) (tasks.Outcome, error) { panic("nil map") })})
	done := f.WaitFor(task.ID)
	stop()
	assert.Equal(t, "internal error", *done.ErrorMessage, "the panic may name anything; it is in the log")
	st, err := f.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, st.TasksByFinalState[tasks.StatusDone])
	assert.Equal(t, 2, st.TasksByFinalState[tasks.StatusAbandoned])
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
		assert.Equal(t, tasks.Lane{Waiting: 1, Delayed: 1, Running: 1, Oldest: 3 * time.Second, Sound: 30}, st.Tasks)
		assert.Equal(t, tasks.Lane{Waiting: 1, Oldest: 3 * time.Second, Sound: 30}, st.Batch)
	})
}

// TestWaitHonorsItsContext waits for a task without a worker.
func TestWaitHonorsItsContext(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := f.Wait(ctx, f.Account, task.ID)
	require.True(t, errors.Is(err, context.DeadlineExceeded))
}
