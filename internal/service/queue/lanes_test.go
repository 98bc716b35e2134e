package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

func TestAccountsTakeTurns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		names := map[string]string{f.Account: "a", f.NewAccount("b", 10000): "b", f.NewAccount("c", 10000): "c"}
		for account, name := range names {
			n := map[string]int{"a": 6, "b": 2, "c": 3}[name]
			for range n {
				f.Add(func(r *tasks.Request) { r.Account = account })
			}
		}
		order := ""
		for c := f.Take(); c != nil; c = f.Take() {
			order += names[c.AccountID]
		}
		require.Len(t, order, 11)
		seen := map[byte]bool{}
		for _, letter := range []byte(order[:3]) {
			seen[letter] = true
		}
		assert.Len(t, seen, 3, "each of the three accounts has one of the first three turns: %s", order)
		assert.Equal(t, order[:3], order[3:6], "and the next: %s", order)
		assert.Equal(t, "aaa", order[8:], "the account with the most tasks comes last: %s", order)
	})
}

func TestBatchLaneWaitsForTheTasksLane(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		batch := f.Add(func(r *tasks.Request) { r.Batch = true })
		first, second := f.Add(nil), f.Add(nil)
		assert.Equal(t, first.ID, f.Take().ID)
		c := f.Take()
		assert.Equal(t, second.ID, c.ID)
		require.NoError(t, f.Release(t.Context(), c, tasks.EndRecoverable, "x"))
		assert.Equal(t, batch.ID, f.Take().ID, "a retry that is not due is not waiting")
		assert.Nil(t, f.Take())
	})
}

// TestBatchRunsWithin24Hours keeps the tasks lane full for days of virtual
// time, with one worker that needs 10 minutes per task. It covers T17 of
// test/README.md.
func TestBatchRunsWithin24Hours(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		var batch []tasks.Task
		var worst time.Duration
		ordinary, done := 0, 0
		const wanted = batchTasks
		for step := 0; done < wanted; step++ {
			require.Less(t, step, 1000)
			for f.Count("SELECT COUNT(*) FROM tasks WHERE lane <> 'batch' AND NOT batch_mode AND phase = 'queued'") < 3 {
				f.Add(func(r *tasks.Request) { r.URL = "https://source.example/a" })
			}
			if len(batch) < wanted && step%2 == 0 {
				batch = append(batch, f.Add(func(r *tasks.Request) { r.Batch = true; r.URL = "https://source.example/b" }))
			}
			c := f.Take()
			clock = clock.Add(10 * time.Minute)
			require.NoError(t, f.Complete(t.Context(), c, tasks.Outcome{Tier: "standard", Seconds: 600}))
			if c.BatchMode {
				done++
				worst = max(worst, clock.Sub(c.CreatedAt))
				bill, err := f.Billing().Bill(t.Context(), c.AccountID, c.ID)
				require.NoError(t, err)
				require.NotNil(t, bill.Detail.BatchDiscount)
				assert.Equal(t, billing.Money(667), bill.Amount, "(0.60 + 0.10 + 0.10) / 60 × 10 minutes × 0.5")
			} else {
				ordinary++
			}
		}
		assert.LessOrEqual(t, worst, 24*time.Hour)
		assert.Greater(t, worst, 20*time.Hour, "the lane was full, so they waited")
		t.Logf("T17: %d batch tasks behind a lane that is never empty (%d ordinary tasks): the last done %s after its creation, half price each", wanted, ordinary, worst)
	})
}

// TestClockJumpsLoseNothing makes the clock jump between all steps of many
// tasks. It covers T26 of test/README.md.
func TestClockJumpsLoseNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		jumps := []time.Duration{-48 * time.Hour, time.Minute, 30 * 24 * time.Hour, -time.Second, -30 * 24 * time.Hour, 11 * time.Minute}
		n := 0
		jump := func() { clock = clock.Add(jumps[n%len(jumps)]); n++ }
		var ids []string
		for i := range 20 {
			ids = append(ids, f.Add(func(r *tasks.Request) {
				r.URL, r.Batch, r.CallbackURL = "https://source.example/a", i%4 == 0, "https://receiver.example/"
			}).ID)
			jump()
		}
		failed := map[string]bool{}
		for steps := 0; f.Count("SELECT COUNT(*) FROM tasks WHERE phase <> 'final'") > 0; steps++ {
			require.Less(t, steps, 500, "a task was lost to the clock")
			c := f.Take()
			jump()
			if c == nil {
				continue
			}
			if !failed[c.ID] {
				failed[c.ID] = true
				require.NoError(t, f.Release(t.Context(), c, tasks.EndRecoverable, "x"))
			} else {
				require.NoError(t, f.Complete(t.Context(), c, tasks.Outcome{Tier: "standard", Seconds: 60}))
			}
			jump()
		}
		delivered := 0
		for steps := 0; f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'queued'") > 0; steps++ {
			require.Less(t, steps, 500, "a callback was lost to the clock")
			cb, err := f.Outbox().Next(t.Context(), "n", webhook.Busy{})
			require.NoError(t, err)
			jump()
			if cb == nil {
				continue
			}
			var failure error
			if cb.Attempts == 0 {
				failure = assert.AnError
			} else {
				delivered++
			}
			require.NoError(t, f.Outbox().Note(t.Context(), cb, failure))
			jump()
		}
		f.Exact()
		for _, id := range ids {
			require.Equal(t, tasks.StatusDone, f.Row(id).Status)
		}
		assert.Equal(t, 20, delivered)
		t.Logf("T26: %d jumps of the clock up to 30 days either way: 20 of 20 tasks done after one retry each, charged once, %d callbacks delivered after one retry each", n, delivered)
	})
}
