package tasks_test

import (
	"context"
	"errors"
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

func TestUpkeepShowsCallbacksChoresAndLanes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		u, err := f.Stats(t.Context())
		require.NoError(t, err)
		assert.Zero(t, u.OldestCallback)
		assert.Empty(t, u.ChoresDone)
		assert.Contains(t, u.PausedLanes, queue.LaneBatch)

		for range 2 {
			f.Add(func(r *tasks.Request) { r.CallbackURL = "https://hooks.example/" })
			require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "x"))
			clock = clock.Add(time.Minute)
		}
		work := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
		require.NoError(t, f.Queue().Chore(t.Context(), "good", time.Hour, work(nil)))
		done := clock
		require.Error(t, f.Queue().Chore(t.Context(), "bad", time.Hour, work(errors.New("x"))))
		clock = clock.Add(2 * time.Hour)
		require.Error(t, f.Queue().Chore(t.Context(), "good", time.Hour, work(errors.New("x"))))
		require.NoError(t, f.Queue().SetPaused(t.Context(), queue.LaneBatch, true))
		u, err = f.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2*time.Hour+2*time.Minute, u.OldestCallback)
		assert.Equal(t, map[string]time.Time{"good": done}, u.ChoresDone, "a failed chore counts as not done")
		assert.True(t, u.PausedLanes[queue.LaneBatch])
		assert.False(t, u.PausedLanes[queue.LaneTasks])

		f.Exec("UPDATE callbacks SET phase = 'delivered'")
		u, err = f.Stats(t.Context())
		require.NoError(t, err)
		assert.Zero(t, u.OldestCallback)
	})
}

func TestEveryEndWithoutAResultIsReported(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var told []tasks.Ending
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Ended = func(how tasks.Ending) { told = append(told, how) } })
		f.Add(nil)
		f.Add(nil)
		claim := f.Take()
		require.NoError(t, f.Release(t.Context(), claim, tasks.EndPermanent, "x"))
		require.ErrorIs(t, f.Release(t.Context(), claim, tasks.EndCrash, "x"), queue.ErrSuperseded)
		f.Take()
		_, err := f.Reap(t.Context(), "w", tasks.EndInterrupted, "lost")
		require.NoError(t, err)
		assert.Equal(t, []tasks.Ending{tasks.EndPermanent, tasks.EndInterrupted}, told)
	})
}
