package tasks_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/otograph/otograph/tasks"
	"github.com/otograph/otograph/tasks/taskstest"
)

// TestWaveformLivesWithTheResult: it is stored beside the result, kept by the
// clean-up, read by its owner, and gone with the task.
func TestWaveformLivesWithTheResult(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	_, err := f.Waveform(t.Context(), task.AccountID, task.ID)
	require.ErrorIs(t, err, tasks.ErrNotDone)
	peaks := []byte{0, 1, 255}
	require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: json.RawMessage(`{}`), Seconds: 1, Waveform: peaks}))
	assert.Empty(t, f.Orphans())
	file, err := f.Waveform(t.Context(), task.AccountID, task.ID)
	require.NoError(t, err)
	got, err := io.ReadAll(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	assert.Equal(t, peaks, got)
	_, err = f.Waveform(t.Context(), "another", task.ID)
	require.ErrorIs(t, err, tasks.ErrForbidden)

	require.NoError(t, f.Delete(t.Context(), task.AccountID, task.ID))
	for _, key := range f.Files() {
		assert.False(t, strings.HasPrefix(key, "results/"), key)
	}

	none := f.Add(nil)
	require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: json.RawMessage(`{}`), Seconds: 1}))
	_, err = f.Waveform(t.Context(), none.AccountID, none.ID)
	require.ErrorIs(t, err, tasks.ErrNotFound, "a worker that left none")
}
