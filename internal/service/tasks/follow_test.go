package tasks_test

import (
	"context"
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

// until receives states until one satisfies wanted.
func until(t *testing.T, states <-chan tasks.Snapshot, wanted func(tasks.Snapshot) bool) tasks.Snapshot {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case state := <-states:
			if wanted(state) {
				return state
			}
		case <-late:
			require.FailNow(t, "the state did not arrive")
		}
	}
}

// tellingEngine reports each part of its run, and continues when the test lets
// it.
type tellingEngine struct{ on chan struct{} }

func (e tellingEngine) ModelSet() string { return "telling" }

func (e tellingEngine) Run(_ context.Context, job worker.Job) (tasks.Outcome, error) {
	for _, part := range []struct {
		stage spec.Stage
		done  float64
	}{{spec.StageDecode, 0.25}, {spec.StageTranscribe, 0.5}} {
		job.Progress(string(part.stage), part.done)
		<-e.on
	}
	return tasks.Outcome{Seconds: 30}, nil
}

// TestFollowersReceiveTheEnginesReports: reports of a worker's engine reach the
// followers of its task. A follower that does not receive blocks no other and
// finds the newest state.
func TestFollowersReceiveTheEnginesReports(t *testing.T) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			f := taskstest.New(t, open(t, db.Options{}))
			task := f.Add(nil)
			states, err := f.Follow(t.Context(), f.Account, task.ID)
			require.NoError(t, err)
			deaf, err := f.Follow(t.Context(), f.Account, task.ID)
			require.NoError(t, err)
			first := until(t, states, func(tasks.Snapshot) bool { return true })
			assert.Equal(t, tasks.Snapshot{TaskID: task.ID, Status: tasks.StatusProcessing, UpdatedAt: first.UpdatedAt}, first)

			engine := tellingEngine{make(chan struct{})}
			w, err := worker.New(f.Service.Runs, worker.Config{Engine: engine, Grace: time.Millisecond})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = w.Run(ctx) }()
			defer func() { stop(); <-ended }()
			for _, want := range []spec.Stage{spec.StageDecode, spec.StageTranscribe} {
				got := until(t, states, func(s tasks.Snapshot) bool { return s.Stage == want })
				assert.Equal(t, map[spec.Stage]float64{spec.StageDecode: 0.25, spec.StageTranscribe: 0.5}[want], got.Fraction)
				engine.on <- struct{}{}
			}
			last := until(t, states, func(s tasks.Snapshot) bool { return s.Final })
			assert.Equal(t, tasks.StatusDone, last.Status)
			assert.Empty(t, last.Stage, "the end is not a stage")
			assert.Equal(t, last, until(t, deaf, func(s tasks.Snapshot) bool { return s.Final }), "the newest state has replaced all others")
		})
	}
}

// TestFollowChecksTheOwner: other accounts cannot follow a task, and a follower
// learns that its task was deleted.
func TestFollowChecksTheOwner(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	_, err := f.Follow(t.Context(), f.NewAccount("someone else", 0), task.ID)
	require.ErrorIs(t, err, tasks.ErrForbidden)
	_, err = f.Follow(t.Context(), f.Account, "01a1fe6c-4156-7cc0-98a4-f4501faaa7d1")
	require.ErrorIs(t, err, tasks.ErrNotFound)

	states, err := f.Follow(t.Context(), f.Account, task.ID)
	require.NoError(t, err)
	require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "not audio"))
	state := until(t, states, func(s tasks.Snapshot) bool { return s.Final })
	assert.Equal(t, []any{tasks.StatusFailed, "not audio"}, []any{state.Status, state.Error})
	require.NoError(t, f.Delete(t.Context(), f.Account, task.ID))
	assert.Equal(t, tasks.Snapshot{TaskID: task.ID, Gone: true}, until(t, states, func(s tasks.Snapshot) bool { return s.Gone }))
}
