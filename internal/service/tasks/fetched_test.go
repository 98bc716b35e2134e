package tasks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

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
		require.NoError(t, f.Fetched(t.Context(), c, *f.Audio("downloaded"), 600))
		assert.InDelta(t, 10*first, held(rich.ID), 9, "the first minute's price was rounded")
		c, err = f.NextFetch(t.Context(), "w", queue.Busy{Ahead: 10})
		require.NoError(t, err)
		require.Equal(t, poor.ID, c.ID)
		require.NoError(t, f.Fetched(t.Context(), c, *f.Audio("downloaded, too"), 600))
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
