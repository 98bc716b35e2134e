package tasks

import (
	"fmt"
	"testing"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (f *fixture) take() *claim {
	f.t.Helper()
	c, err := f.next(f.t.(*testing.T).Context(), "w", "m")
	require.NoError(f.t, err)
	return c
}

func TestAccountsTakeTurns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		names := map[string]string{f.account: "a", f.newAccount("b", 10000): "b", f.newAccount("c", 10000): "c"}
		for account, name := range names {
			n := map[string]int{"a": 6, "b": 2, "c": 3}[name]
			for range n {
				f.create(func(r *Request) { r.Account = account })
			}
		}
		order := ""
		for c := f.take(); c != nil; c = f.take() {
			order += names[c.AccountID]
		}
		require.Len(t, order, 11)
		seen := map[byte]bool{}
		for _, letter := range []byte(order[:3]) {
			seen[letter] = true
		}
		assert.Len(t, seen, 3, "each of the three has one of the first three turns: %s", order)
		assert.Equal(t, order[:3], order[3:6], "and the next: %s", order)
		assert.Equal(t, "aaa", order[8:], "who has most waits last: %s", order)
	})
}

func TestBatchLaneWaitsForTheTasksLane(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		batch := f.create(func(r *Request) { r.Batch = true })
		first, second := f.create(nil), f.create(nil)
		assert.Equal(t, first.ID, f.take().ID)
		c := f.take()
		assert.Equal(t, second.ID, c.ID)
		require.NoError(t, f.release(t.Context(), c, endRecoverable, "x"))
		assert.Equal(t, batch.ID, f.take().ID, "a retry that is not due is not waiting")
		assert.Nil(t, f.take())
	})
}

// TestT17BatchWithin24Hours keeps the tasks lane full for days of virtual time, with one worker that needs 10 minutes a task.
func TestT17BatchWithin24Hours(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		f := newFixture(t, d, func(c *Config) { c.Clock = func() time.Time { return clock } })
		var batch []Task
		var worst time.Duration
		ordinary, done := 0, 0
		const tasks = batchTasks
		for step := 0; done < tasks; step++ {
			require.Less(t, step, 1000)
			for f.count("SELECT COUNT(*) FROM tasks WHERE lane = 'tasks' AND phase = 'queued'") < 3 {
				f.create(func(r *Request) { r.URL = "https://source.example/a" })
			}
			if len(batch) < tasks && step%2 == 0 {
				batch = append(batch, f.create(func(r *Request) { r.Batch = true; r.URL = "https://source.example/b" }))
			}
			c := f.take()
			clock = clock.Add(10 * time.Minute)
			require.NoError(t, f.settle(t.Context(), c, Outcome{Tier: "standard", Seconds: 600}, fmt.Sprintf("results/%s.zst", c.ID)))
			if c.BatchMode {
				done++
				worst = max(worst, clock.Sub(c.CreatedAt))
				receipt, err := f.billing.ReceiptOf(t.Context(), c.ID)
				require.NoError(t, err)
				require.NotNil(t, receipt.Quote.Detail.BatchDiscount)
				assert.Equal(t, billing.Money(667), receipt.Quote.Total, "(0.60 + 0.10 + 0.10) / 60 × 10 minutes × 0.5")
			} else {
				ordinary++
			}
		}
		assert.LessOrEqual(t, worst, 24*time.Hour)
		assert.Greater(t, worst, 20*time.Hour, "the lane was full: they did wait")
		t.Logf("T17: %d batch tasks behind a lane that is never empty (%d ordinary tasks): the last done %s after its creation, half price each", tasks, ordinary, worst)
	})
}

// TestT26ClockJumps lets the clock jump between all steps of many tasks.
func TestT26ClockJumps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		f := newFixture(t, d, func(c *Config) { c.Clock = func() time.Time { return clock } })
		jumps := []time.Duration{-48 * time.Hour, time.Minute, 30 * 24 * time.Hour, -time.Second, -30 * 24 * time.Hour, 11 * time.Minute}
		n := 0
		jump := func() { clock = clock.Add(jumps[n%len(jumps)]); n++ }
		var ids []string
		for i := range 20 {
			ids = append(ids, f.create(func(r *Request) {
				r.URL, r.Batch, r.CallbackURL = "https://source.example/a", i%4 == 0, "https://receiver.example/"
			}).ID)
			jump()
		}
		failed := map[string]bool{}
		for steps := 0; f.count("SELECT COUNT(*) FROM tasks WHERE phase <> 'final'") > 0; steps++ {
			require.Less(t, steps, 500, "a task was lost to the clock")
			c := f.take()
			jump()
			if c == nil {
				continue
			}
			if !failed[c.ID] {
				failed[c.ID] = true
				require.NoError(t, f.release(t.Context(), c, endRecoverable, "x"))
			} else {
				require.NoError(t, f.complete(t.Context(), c, Outcome{Result: []byte(`{}`), Tier: "standard", Seconds: 60}))
			}
			jump()
		}
		delivered := 0
		for steps := 0; f.count("SELECT COUNT(*) FROM callbacks WHERE phase = 'queued'") > 0; steps++ {
			require.Less(t, steps, 500, "a callback was lost to the clock")
			cb, err := f.nextCallback(t.Context(), "n", nil)
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
			require.NoError(t, f.delivered(t.Context(), cb, failure))
			jump()
		}
		f.exact()
		for _, id := range ids {
			require.Equal(t, StatusDone, f.get(id).Status)
		}
		assert.Equal(t, 20, delivered)
		t.Logf("T26: %d jumps of the clock up to 30 days either way: 20 of 20 tasks done after one retry each, charged once, %d callbacks delivered after one retry each", n, delivered)
	})
}
