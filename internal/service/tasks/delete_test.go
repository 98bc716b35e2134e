package tasks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestDeletionInEveryState deletes a task in each possible state. It covers T18
// of test/README.md.
func TestDeletionInEveryState(t *testing.T) {
	states := []struct {
		name    string
		reach   func(f *taskstest.Fixture, task tasks.Task)
		refused bool
	}{
		{"queued", func(*taskstest.Fixture, tasks.Task) {}, true},
		{"running", func(f *taskstest.Fixture, _ tasks.Task) { f.Take() }, true},
		{"handed back", func(f *taskstest.Fixture, _ tasks.Task) {
			require.NoError(f.T, f.Release(f.T.(*testing.T).Context(), f.Take(), tasks.EndHandedBack, ""))
		}, true},
		{"waiting for a retry", func(f *taskstest.Fixture, _ tasks.Task) {
			c := f.Take()
			w, err := f.Config.Blobs.Create(context.Background(), tasks.CheckpointPrefix(c.ID)+"0123/vad")
			require.NoError(f.T, err)
			_, err = w.Write([]byte("half the work"))
			require.NoError(f.T, err)
			_, err = w.Commit()
			require.NoError(f.T, err)
			require.NoError(f.T, f.Release(f.T.(*testing.T).Context(), c, tasks.EndRecoverable, "x"))
		}, false},
		{"done, callback pending", func(f *taskstest.Fixture, _ tasks.Task) {
			require.NoError(f.T, f.Complete(f.T.(*testing.T).Context(), f.Take(), tasks.Outcome{Seconds: 3}))
		}, false},
		{"done, callback under way", func(f *taskstest.Fixture, _ tasks.Task) {
			require.NoError(f.T, f.Complete(f.T.(*testing.T).Context(), f.Take(), tasks.Outcome{Seconds: 3}))
			d, err := f.Outbox().Next(f.T.(*testing.T).Context(), "n", webhook.Busy{})
			require.NoError(f.T, err)
			f.T.Cleanup(func() { require.NoError(f.T, f.Outbox().Note(context.Background(), d, nil), "its end is not an error") })
		}, false},
		{"failed", func(f *taskstest.Fixture, _ tasks.Task) {
			require.NoError(f.T, f.Release(f.T.(*testing.T).Context(), f.Take(), tasks.EndPermanent, "x"))
		}, false},
		{"abandoned", func(f *taskstest.Fixture, task tasks.Task) {
			f.Exec("UPDATE tasks SET failures = 3 WHERE id = $1", task.ID)
			require.NoError(f.T, f.Release(f.T.(*testing.T).Context(), f.Take(), tasks.EndRecoverable, "x"))
		}, false},
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		refused, gone := 0, 0
		for _, state := range states {
			t.Run(state.name, func(t *testing.T) {
				f := &taskstest.Fixture{Service: f.Service, T: t, Account: f.Account, Dir: f.Dir}
				f.Exec("UPDATE tasks SET phase = 'final' WHERE phase = 'queued'") // tasks of earlier cases must not be claimed
				task := f.Add(func(r *tasks.Request) { r.CallbackURL = "https://receiver.example/" })
				state.reach(f, task)
				err := f.Delete(t.Context(), f.Account, task.ID)
				if state.refused {
					require.ErrorIs(t, err, tasks.ErrProcessing)
					_, err = f.Get(t.Context(), f.Account, task.ID)
					require.NoError(t, err)
					refused++
					return
				}
				require.NoError(t, err)
				for table, column := range map[string]string{"tasks": "id", "holds": "task_id", "callbacks": "task_id"} {
					assert.Zero(t, f.Count(fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s = $1", table, column), task.ID), table)
				}
				require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
				assert.Zero(t, f.Count("SELECT COUNT(*) FROM doomed_blobs"))
				for _, key := range f.Files() {
					assert.NotContains(t, key, task.ID)
				}
				require.ErrorIs(t, f.Delete(t.Context(), f.Account, task.ID), tasks.ErrNotFound)
				gone++
			})
		}
		t.Logf("T18: %d states: %d refused with a conflict, %d gone entirely (rows, files, callbacks, hold)", len(states), refused, gone)
		assert.Equal(t, len(states), refused+gone)
	})
}
