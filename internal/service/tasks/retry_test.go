package tasks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

func TestRetryOfAnEndedTaskHoldsAgainAndIsChargedOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		ends := map[tasks.Status]tasks.Ending{tasks.StatusFailed: tasks.EndPermanent, tasks.StatusAbandoned: tasks.EndRecoverable}
		for status, end := range ends {
			task := f.Add(func(r *tasks.Request) {
				r.URL, r.CallbackURL, r.CallbackSecret = "https://source.example/a", "https://hooks.example/", "shared secret of 16"
			})
			before, _, err := f.Billing().HoldLimit(t.Context(), task.ID)
			require.NoError(t, err)
			f.Exec("UPDATE tasks SET failures = 3 WHERE id = $1", task.ID)
			require.NoError(t, f.Release(t.Context(), f.Take(), end, "x"))
			require.Equal(t, status, f.Row(task.ID).Status)
			f.Exec("UPDATE callbacks SET phase = 'delivered' WHERE task_id = $1", task.ID)

			again, err := f.Retry(t.Context(), task.ID)
			require.NoError(t, err)
			assert.Equal(t, tasks.StatusProcessing, again.Status)
			assert.Nil(t, again.FinishedAt)
			assert.Nil(t, again.ErrorMessage)
			held, _, err := f.Billing().HoldLimit(t.Context(), task.ID)
			require.NoError(t, err)
			assert.Positive(t, held)
			assert.Equal(t, before, held)
			f.Exact()
			for range 3 { // all attempts are available again
				require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndRecoverable, "x"))
				_, err = f.Retry(t.Context(), task.ID) // immediately, not after the delay
				require.NoError(t, err)
			}
			require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 3}))
			assert.Equal(t, tasks.StatusDone, f.Row(task.ID).Status)
			assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM ledger WHERE task_id = $1", task.ID))
			assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE task_id = $1 AND phase = 'queued' AND body LIKE '%\"done\"%'", task.ID), "the new end is announced")
			f.Exact()
			_, err = f.Retry(t.Context(), task.ID)
			assert.ErrorIs(t, err, tasks.ErrNotRetryable, "a done task")
		}
	})
}

func TestRetryRefusesTasksThatCannotRun(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		task := f.Add(nil)
		_, err := f.Retry(t.Context(), task.ID)
		assert.ErrorIs(t, err, tasks.ErrNotRetryable, "it waits")
		claim := f.Take()
		_, err = f.Retry(t.Context(), task.ID)
		assert.ErrorIs(t, err, tasks.ErrNotRetryable, "it runs")
		require.NoError(t, f.Release(t.Context(), claim, tasks.EndPermanent, "x"))
		_, err = f.Retry(t.Context(), task.ID)
		require.ErrorIs(t, err, tasks.ErrNotRetryable)
		assert.ErrorContains(t, err, "recording")
		_, err = f.Retry(t.Context(), "no-such-task")
		assert.ErrorIs(t, err, tasks.ErrNotFound)

		poor := f.NewAccount("poor", 1000)
		task = f.Add(func(r *tasks.Request) { r.Account, r.URL = poor, "https://source.example/a" })
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "x"))
		_, err = f.Billing().Refund(t.Context(), poor, 999, "test")
		require.NoError(t, err)
		_, err = f.Retry(t.Context(), task.ID)
		assert.ErrorIs(t, err, billing.ErrInsufficientBalance)
		assert.Equal(t, tasks.StatusFailed, f.Row(task.ID).Status, "nothing changed")
		f.Exact()
	})
}

// TestRetryRefusesLostVoices: the recordings of known speakers are deleted when
// a task ends, so that it can't run again even if its audio is kept. A task
// that waits for its retry still has them.
func TestRetryRefusesLostVoices(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d, func(c *tasks.Config) { c.KeepAudio = time.Hour })
		task := f.Add(func(r *tasks.Request) { r.Extras.Voices = []string{"Ann"} })
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndRecoverable, "x"))
		_, err := f.Retry(t.Context(), task.ID)
		require.NoError(t, err, "it waits for its retry")
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "x"))
		_, err = f.Retry(t.Context(), task.ID)
		require.ErrorIs(t, err, tasks.ErrNotRetryable)
		assert.ErrorContains(t, err, "known speakers")
		assert.Equal(t, tasks.StatusFailed, f.Row(task.ID).Status, "nothing changed")
		f.Exact()
	})
}

// TestRetrySparesKeptAudio retries tasks whose uploads are kept for a while:
// files scheduled for deletion at the old end stay.
func TestRetrySparesKeptAudio(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		f := taskstest.New(t, d, func(c *tasks.Config) { c.KeepAudio, c.Clock = time.Hour, func() time.Time { return clock } })
		task := f.Add(nil)
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "x"))
		_, err := f.Retry(t.Context(), task.ID)
		require.NoError(t, err)
		clock = clock.Add(2 * time.Hour)
		require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(context.Background()))
		f.Exact()
		claim := f.Take()
		file, err := f.Config.Blobs.Open(t.Context(), claim.Blob)
		require.NoError(t, err, "its audio is there")
		file.Close()
		require.NoError(t, f.Complete(t.Context(), claim, tasks.Outcome{Seconds: 3}))
		clock = clock.Add(2 * time.Hour)
		f.Tidy()
		assert.Empty(t, f.Orphans())
		assert.Len(t, f.Files(), 1, "the result alone")
	})
}

// TestTaskTakenFromItsWorker: a running task that an operator takes from its
// worker goes to another one without a counted attempt, and the first worker's
// result is refused. A task that no worker runs is unchanged.
func TestTaskTakenFromItsWorker(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		task := f.Add(nil)
		require.ErrorIs(t, f.TakeBack(t.Context(), task.ID), tasks.ErrNotRetryable)
		stuck := f.Take()
		require.NoError(t, f.TakeBack(t.Context(), task.ID))
		require.ErrorIs(t, f.Complete(t.Context(), stuck, tasks.Outcome{Seconds: 3}), queue.ErrSuperseded)
		other := f.Take()
		require.Equal(t, task.ID, other.ID)
		require.ErrorIs(t, f.Complete(t.Context(), stuck, tasks.Outcome{Seconds: 3}), queue.ErrSuperseded)
		require.NoError(t, f.Complete(t.Context(), other, tasks.Outcome{Seconds: 3}))
		assert.Zero(t, f.Count("SELECT failures FROM tasks WHERE id = $1", task.ID))
		require.ErrorIs(t, f.TakeBack(t.Context(), task.ID), tasks.ErrNotRetryable)
		f.Exact()
	})
}

// TestSoundThatWaits: the state of the queue has the length of the waiting
// sound; a task of unknown length counts with the length of its hold.
func TestSoundThatWaits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		f.Add(nil) // 30 s
		f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = f.Audio("sound"), 12.5 })
		f.Add(func(r *tasks.Request) { r.URL = "https://source.example/a" })
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []float64{42.5, 60, 0}, []float64{st.Tasks.Sound, st.Fetch.Sound, st.Batch.Sound})
		f.Take() // also a download whose header has no length
		st, err = f.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []float64{12.5 + 60, 0}, []float64{st.Tasks.Sound, st.Fetch.Sound})
	})
}
