package tasks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// TestGapsAreNotCharged: a recording's length follows its time stamps; only its
// sound is charged.
func TestGapsAreNotCharged(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: spec.Result{AudioDuration: 1000}, Seconds: 50}))
	got, bill := f.ReadResult(task.ID)
	assert.EqualValues(t, 1, bill.BillableMinutes)
	assert.Equal(t, []float64{1000, 50}, []float64{got.AudioDuration, got.Stats.DecodedSeconds})
	done, err := f.Get(t.Context(), f.Account, task.ID)
	require.NoError(t, err)
	assert.EqualValues(t, 1000, *done.AudioDuration, "of the task, as of its result")
}
