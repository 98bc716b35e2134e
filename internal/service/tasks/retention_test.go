package tasks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestOldTasksAreDeleted ages 250 finished tasks (60 in the short form), and
// some unfinished ones.
func TestOldTasksAreDeleted(t *testing.T) {
	n := 250
	if testing.Short() {
		n = 60
	}
	charged := n - (n+2)/3 + 1 // two of three, and the young one
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now()
		f := taskstest.New(t, d, func(c *tasks.Config) {
			c.Clock = func() time.Time { return clock }
			c.KeepTasks = 30 * 24 * time.Hour
		})
		end := func(i int) {
			c := f.Take()
			require.NotNil(t, c)
			if i%3 == 0 {
				require.NoError(t, f.Release(t.Context(), c, tasks.EndPermanent, "not audio"))
				return
			}
			require.NoError(t, f.Complete(t.Context(), c, tasks.Outcome{Tier: "standard", Seconds: 60, Waveform: []byte{1}}))
		}
		for i := range n {
			f.Add(func(r *tasks.Request) {
				r.URL, r.CallbackURL = fmt.Sprint("https://source.example/", i), "https://receiver.example/"
			})
			end(i)
		}
		clock = clock.Add(29 * 24 * time.Hour)
		young, waiting := f.Add(nil), f.Add(nil)
		end(1)
		f.Tidy()
		assert.Equal(t, n+2, f.Count("SELECT COUNT(*) FROM tasks"))
		clock = clock.Add(2 * 24 * time.Hour)
		f.Tidy()
		assert.Equal(t, 2, f.Count("SELECT COUNT(*) FROM tasks"))
		assert.Equal(t, tasks.StatusDone, f.Row(young.ID).Status)
		assert.Equal(t, tasks.StatusProcessing, f.Row(waiting.ID).Status)
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM callbacks"))
		assert.Len(t, f.Files(), 2, "the young task's result, the waiting one's audio")
		assert.Equal(t, charged+1, f.Count("SELECT COUNT(*) FROM ledger"), "a recharge and every charge")
		assert.Equal(t, charged, f.Count("SELECT COUNT(*) FROM settlements"))
		require.Empty(t, f.Sums())
		list, total, err := f.List(t.Context(), f.Account, tasks.Filter{Page: billing.Page{Number: 1, Size: 10}})
		require.NoError(t, err)
		assert.Len(t, list, total)
		assert.Equal(t, 2, total)
	})
}

// TestRetentionOfAnAccount: tasks of an account with its own retention go after
// that time, whether the service keeps tasks forever, longer or shorter.
func TestRetentionOfAnAccount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock, day := time.Now(), 24*time.Hour
		f := taskstest.New(t, d, func(c *tasks.Config) {
			c.Clock = func() time.Time { return clock }
			c.KeepTasks = 10 * day
		})
		accounts := map[string]time.Duration{f.Account: 10 * day, f.NewAccount("short", 100_000): 3 * day, f.NewAccount("long", 100_000): 30 * day, f.NewAccount("usual", 100_000): 0}
		for id, keep := range accounts {
			if id != f.Account {
				require.NoError(t, f.Accounts.SetRetention(t.Context(), id, keep))
			}
			f.Add(func(r *tasks.Request) { r.Account = id })
			require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 3}))
		}
		require.ErrorContains(t, f.Accounts.SetRetention(t.Context(), f.Account, time.Hour), "want at least 24h")
		for _, stage := range []struct {
			after time.Duration
			left  int
		}{{2 * day, 4}, {2 * day, 3}, {7 * day, 1}, {20 * day, 0}} {
			clock = clock.Add(stage.after)
			f.Tidy()
			assert.Equal(t, stage.left, f.Count("SELECT COUNT(*) FROM tasks"))
		}
		f.Exact()
	})
}
