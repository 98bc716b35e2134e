package tasks_test

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

// TestEndsClaimTheNextTask: the end of a task and the claim of the next are one
// transaction, unless the claim fails; then the end is written alone.
func TestEndsClaimTheNextTask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		end := func(c *tasks.Claim) *tasks.Claim {
			t.Helper()
			next, err := f.CompleteNext(t.Context(), c, tasks.Outcome{Tier: "standard", Seconds: 30}, "w", "m")
			require.NoError(t, err)
			assert.Equal(t, tasks.StatusDone, f.Row(c.ID).Status)
			return next
		}
		first, second, batch := f.Add(nil), f.Add(nil), f.Add(func(r *tasks.Request) { r.Batch = true })
		c := f.Take()
		require.Equal(t, first.ID, c.ID)
		for _, want := range []string{second.ID, batch.ID} {
			c = end(c)
			require.NotNil(t, c)
			assert.Equal(t, want, c.ID)
			assert.EqualValues(t, 1, c.Held.Attempt)
			assert.Equal(t, f.Row(want).Options, c.Options)
		}
		assert.Nil(t, end(c), "nothing waits")

		poor := f.NewAccount("poor", 300)
		f.Add(nil)
		waits := f.Add(func(r *tasks.Request) { r.Account = poor })
		clock := time.Now()
		refund(f, poor, &clock)
		assert.Nil(t, end(f.Take()), "the next task's account is overdrawn, which Next handles")
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase = 'queued' AND attempt = 0", waits.ID))
		assert.Nil(t, f.Take())

		last := f.Add(nil)
		c = f.Take()
		require.Equal(t, last.ID, c.ID)
		f.Add(nil)
		f.Exec("INSERT INTO workers (id, kind, host, pid, pid_start, version, model_set, started_at, beat_at, draining) VALUES ('w', 'worker', '', 1, '', '', 'm', 1, 1, TRUE)")
		assert.Nil(t, end(c), "a worker that drains claims nothing")
		f.Exact()
	})
}

// TestDownloadsArePriced: if a download's length is known, its price is held
// when the download ends; a task that its account cannot pay for fails without
// a worker.
func TestDownloadsArePriced(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		add := func(account string) tasks.Task {
			return f.Add(func(r *tasks.Request) { r.Account, r.URL = account, "https://source.example/a" })
		}
		held := func(id string) int {
			return f.Count("SELECT COALESCE((SELECT amount FROM holds WHERE task_id = $1), 0)", id)
		}
		rich := add(f.Account)
		first := held(rich.ID)
		poor := add(f.NewAccount("poor", 300))
		c, err := f.NextFetch(t.Context(), "w", queue.Busy{Ahead: 10})
		require.NoError(t, err)
		require.Equal(t, rich.ID, c.ID)
		c, err = f.FetchedNext(t.Context(), c, *f.Audio("downloaded"), 600, "w", queue.Busy{Ahead: 10})
		require.NoError(t, err)
		require.NotNil(t, c)
		assert.Equal(t, poor.ID, c.ID)
		assert.InDelta(t, 10*first, held(rich.ID), 9, "the first minute's price was rounded")
		none, err := f.FetchedNext(t.Context(), c, *f.Audio("downloaded, too"), 600, "w", queue.Busy{Ahead: 10})
		require.NoError(t, err)
		assert.Nil(t, none)
		row := f.Row(poor.ID)
		assert.Equal(t, tasks.StatusFailed, row.Status)
		assert.Contains(t, *row.ErrorMessage, "insufficient_balance: 10 min of audio require")
		assert.Zero(t, held(poor.ID))
		assert.Len(t, f.Files(), 1, "its audio is gone")
		assert.Equal(t, rich.ID, f.Take().ID)
		assert.Nil(t, f.Take())
		f.Exact()
	})
}
