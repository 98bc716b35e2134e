package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

func TestPausedLaneIsNotClaimed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		batch := f.Add(func(r *tasks.Request) { r.Batch = true })
		task := f.Add(nil)
		require.NoError(t, f.Queue().SetPaused(t.Context(), queue.LaneTasks, true))
		assert.Equal(t, batch.ID, f.Take().ID, "the other lane continues")
		assert.Nil(t, f.Take())
		f.Add(nil) // is accepted
		require.NoError(t, f.Queue().SetPaused(t.Context(), queue.LaneTasks, false))
		assert.Equal(t, task.ID, f.Take().ID)
		assert.ErrorIs(t, f.Queue().SetPaused(t.Context(), "fast", true), queue.ErrNoLane)
	})
}

func TestOverviewCountsEachPhaseByLaneAndAccount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		other := f.NewAccount("another", 10000)
		stop, err := f.Queue().Enter(t.Context(), queue.Member{ID: "w", Kind: queue.Worker, Version: "1.2"}, time.Hour, nil)
		require.NoError(t, err)
		defer stop()
		o, err := f.Queue().Overview(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []queue.LaneState{{Lane: "tasks"}, {Lane: "fetch"}, {Lane: "batch"}}, o.Lanes)

		f.Add(nil)
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndRecoverable, "x"))
		running := f.Add(nil)
		f.Take()
		oldest := clock
		f.Add(nil)
		clock = clock.Add(time.Second)
		f.Add(nil)
		f.Add(func(r *tasks.Request) { r.Account = other; r.Batch = true })
		require.NoError(t, f.Queue().SetPaused(t.Context(), queue.LaneBatch, true))

		require.NoError(t, f.Queue().Report(t.Context(), "w", queue.Progress{TaskID: running.ID, Stage: "vad", Fraction: 0.1}))

		o, err = f.Queue().Overview(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []queue.LaneState{
			{Lane: "tasks", Load: queue.Load{Waiting: 2, Running: 1, Delayed: 1, Oldest: &oldest}},
			{Lane: "fetch"},
			{Lane: "batch", Paused: true, Load: queue.Load{Waiting: 1, Oldest: &clock}},
		}, o.Lanes)
		assert.Equal(t, []queue.AccountState{
			{AccountID: other, Account: "another", Lane: "batch", Load: queue.Load{Waiting: 1, Oldest: &clock}},
			{AccountID: f.Account, Account: "customer", Lane: "tasks", Load: queue.Load{Waiting: 2, Running: 1, Delayed: 1, Oldest: &oldest}},
		}, o.Accounts)
		require.Len(t, o.Workers, 1)
		w := o.Workers[0]
		assert.Equal(t, "w 1.2 "+running.ID, w.ID+" "+w.Version+" "+w.TaskID)
		assert.Equal(t, "vad", w.Stage)
		assert.Equal(t, oldest, w.Since)
		assert.NotZero(t, w.PID)
	})
}
