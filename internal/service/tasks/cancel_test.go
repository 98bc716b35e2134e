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
	"github.com/otograph/otograph/spec"
)

func TestCancelEndsATaskInEveryUnfinishedState(t *testing.T) {
	states := map[string]func(f *taskstest.Fixture) *tasks.Claim{
		"queued":  func(*taskstest.Fixture) *tasks.Claim { return nil },
		"running": func(f *taskstest.Fixture) *tasks.Claim { return f.Take() },
		"handed back": func(f *taskstest.Fixture) *tasks.Claim {
			c := f.Take()
			require.NoError(f.T, f.Release(f.T.Context(), c, tasks.EndHandedBack, ""))
			return c
		},
		"delayed": func(f *taskstest.Fixture) *tasks.Claim {
			c := f.Take()
			require.NoError(f.T, f.Release(f.T.Context(), c, tasks.EndRecoverable, "x"))
			return c
		},
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		for name, reach := range states {
			task := f.Add(func(r *tasks.Request) { r.CallbackURL = "https://hooks.example/" })
			claim := reach(f)
			canceled, err := f.Cancel(t.Context(), task.ID)
			require.NoError(t, err, name)
			assert.Equal(t, tasks.StatusFailed, canceled.Status, name)
			assert.True(t, canceled.Final(), name)
			require.NotNil(t, canceled.ErrorMessage, name)
			assert.Equal(t, "canceled by the operator of the service", *canceled.ErrorMessage, name)
			held, most, err := f.Billing().HoldLimit(t.Context(), task.ID)
			require.NoError(t, err)
			assert.Zero(t, held+most, "%s: the hold is released", name)
			assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE task_id = $1 AND phase = 'queued'", task.ID), name)
			if claim != nil {
				err := f.Complete(t.Context(), claim, tasks.Outcome{Seconds: 3})
				assert.ErrorIs(t, err, queue.ErrSuperseded, "%s: a late result is refused", name)
			}
			assert.Nil(t, f.Take(), "%s: no worker gets it any more", name)
			_, err = f.Cancel(t.Context(), task.ID)
			assert.ErrorIs(t, err, tasks.ErrFinal, name)
			f.Exact()
		}
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"), "nothing is charged")
		f.Tidy()
		assert.Empty(t, f.Orphans())
		_, err := f.Cancel(t.Context(), "no-such-task")
		assert.ErrorIs(t, err, tasks.ErrNotFound)
	})
}

func TestCancelAfterACompletionFails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		task := f.Add(nil)
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 3}))
		_, err := f.Cancel(t.Context(), task.ID)
		require.ErrorIs(t, err, tasks.ErrFinal)
		assert.Equal(t, tasks.StatusDone, f.Row(task.ID).Status)
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM ledger WHERE task_id = $1", task.ID))
		f.Exact()
	})
}

// TestOwnersCancelTheirTasks: other accounts may not cancel them, and no owner
// gets text without a charge.
func TestOwnersCancelTheirTasks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		waiting := f.Add(nil)
		_, err := f.Withdraw(t.Context(), "somebody", waiting.ID)
		require.ErrorIs(t, err, tasks.ErrForbidden)
		canceled, err := f.Withdraw(t.Context(), f.Account, waiting.ID)
		require.NoError(t, err)
		assert.Equal(t, tasks.StatusFailed, canceled.Status)
		assert.Equal(t, "canceled by its owner", *canceled.ErrorMessage)
		_, err = f.Withdraw(t.Context(), f.Account, waiting.ID)
		require.ErrorIs(t, err, tasks.ErrFinal)

		begun := f.Add(nil)
		claim := f.Take()
		_, err = f.Withdraw(t.Context(), f.Account, begun.ID)
		require.NoError(t, err)
		require.ErrorIs(t, f.Complete(t.Context(), claim, tasks.Outcome{Seconds: 300}), queue.ErrSuperseded)

		told := f.Add(nil)
		claim = f.Take()
		require.NoError(t, f.Queue().Report(t.Context(), "nobody", queue.Progress{
			TaskID: told.ID, Attempt: claim.Held.Attempt, Segments: []spec.Segment{{Start: 1, End: 61, Text: "Hello."}},
		}))
		_, err = f.Withdraw(t.Context(), f.Account, told.ID)
		require.ErrorIs(t, err, tasks.ErrTextDelivered)
		require.NoError(t, f.Complete(t.Context(), claim, tasks.Outcome{Seconds: 61}))
		f.Exact()
	})
}
