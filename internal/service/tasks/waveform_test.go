package tasks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestWaveformLivesWithTheResult: a waveform is stored with the result, kept by
// the clean-up, read by its owner, and deleted with the task.
func TestWaveformLivesWithTheResult(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	_, err := f.Waveform(t.Context(), task.AccountID, task.ID)
	require.ErrorIs(t, err, tasks.ErrNotDone)
	peaks := []byte{0, 1, 255}
	require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 1, Waveform: peaks}))
	assert.Empty(t, f.Orphans())
	got, err := f.Waveform(t.Context(), task.AccountID, task.ID)
	require.NoError(t, err)
	assert.Equal(t, peaks, got)
	_, err = f.Waveform(t.Context(), "another", task.ID)
	require.ErrorIs(t, err, tasks.ErrForbidden)

	require.NoError(t, f.Delete(t.Context(), task.AccountID, task.ID))
	for _, key := range f.Files() {
		assert.False(t, strings.HasPrefix(key, "results/"), key)
	}

	none := f.Add(nil)
	require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 1}))
	_, err = f.Waveform(t.Context(), none.AccountID, none.ID)
	require.ErrorIs(t, err, tasks.ErrNotFound, "the worker stored none")
}

// TestLateResultsLeaveNothing: a result that is late, or that the account
// cannot pay for, leaves no files.
func TestLateResultsLeaveNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		late := tasks.Outcome{Seconds: 1, Waveform: []byte{1}}
		results := func() (keys []string) {
			for _, key := range f.Files() {
				if strings.HasPrefix(key, "results/") {
					keys = append(keys, key)
				}
			}
			return keys
		}
		f.Add(nil)
		c := f.Take()
		require.NoError(t, f.Release(t.Context(), c, tasks.EndPermanent, "x"))
		require.ErrorIs(t, f.Complete(t.Context(), c, late), queue.ErrSuperseded)
		assert.Empty(t, results())

		poor := f.NewAccount("poor", 300)
		f.Add(func(r *tasks.Request) { r.Account = poor })
		long := late
		long.Seconds = 3600
		require.ErrorIs(t, f.Complete(t.Context(), f.Take(), long), billing.ErrInsufficientBalance)
		assert.Empty(t, results())
		assert.Empty(t, f.Orphans())
	})
}
