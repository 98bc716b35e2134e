package tasks

import (
	"context"
	"fmt"
	"testing"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestT18DeletionInEveryState deletes a task in each state it can be in.
func TestT18DeletionInEveryState(t *testing.T) {
	states := []struct {
		name    string
		reach   func(f *fixture, task Task)
		refused bool
	}{
		{"queued", func(*fixture, Task) {}, true},
		{"running", func(f *fixture, _ Task) { f.take() }, true},
		{"handed back", func(f *fixture, _ Task) {
			require.NoError(f.t, f.release(f.t.(*testing.T).Context(), f.take(), endHandedBack, ""))
		}, true},
		{"waiting for a retry", func(f *fixture, _ Task) {
			c := f.take()
			require.NoError(f.t, f.checkpoints(c, "m", "x").Save(f.t.(*testing.T).Context(), "vad", []byte("half the work")))
			require.NoError(f.t, f.release(f.t.(*testing.T).Context(), c, endRecoverable, "x"))
		}, false},
		{"done, callback pending", func(f *fixture, _ Task) {
			require.NoError(f.t, f.complete(f.t.(*testing.T).Context(), f.take(), Outcome{Result: []byte(`{"a":1}`), Seconds: 3}))
		}, false},
		{"done, callback under way", func(f *fixture, _ Task) {
			require.NoError(f.t, f.complete(f.t.(*testing.T).Context(), f.take(), Outcome{Result: []byte(`{"a":1}`), Seconds: 3}))
			d, err := f.nextCallback(f.t.(*testing.T).Context(), "n", nil)
			require.NoError(f.t, err)
			f.t.Cleanup(func() { require.NoError(f.t, f.delivered(context.Background(), d, nil), "its end is no trouble") })
		}, false},
		{"failed", func(f *fixture, _ Task) {
			require.NoError(f.t, f.release(f.t.(*testing.T).Context(), f.take(), endPermanent, "x"))
		}, false},
		{"abandoned", func(f *fixture, task Task) {
			f.exec("UPDATE tasks SET failures = 3 WHERE id = $1", task.ID)
			require.NoError(f.t, f.release(f.t.(*testing.T).Context(), f.take(), endRecoverable, "x"))
		}, false},
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		refused, gone := 0, 0
		for _, state := range states {
			t.Run(state.name, func(t *testing.T) {
				f := &fixture{Service: f.Service, t: t, account: f.account, dir: f.dir}
				f.exec("UPDATE tasks SET phase = 'final' WHERE phase = 'queued'") // what earlier cases left does not get in the way
				task := f.create(func(r *Request) { r.CallbackURL = "https://receiver.example/" })
				state.reach(f, task)
				err := f.Delete(t.Context(), f.account, task.ID)
				if state.refused {
					require.ErrorIs(t, err, ErrProcessing)
					_, err = f.Get(t.Context(), f.account, task.ID)
					require.NoError(t, err)
					refused++
					return
				}
				require.NoError(t, err)
				for table, column := range map[string]string{"tasks": "id", "holds": "task_id", "callbacks": "task_id"} {
					assert.Zero(t, f.count(fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s = $1", table, column), task.ID), table)
				}
				assert.Zero(t, f.count("SELECT COUNT(*) FROM doomed_blobs"))
				for _, key := range f.files() {
					assert.NotContains(t, key, task.ID)
				}
				require.ErrorIs(t, f.Delete(t.Context(), f.account, task.ID), ErrNotFound)
				gone++
			})
		}
		t.Logf("T18: %d states: %d refused with a conflict, %d gone entirely (rows, files, callbacks, hold)", len(states), refused, gone)
		assert.Equal(t, len(states), refused+gone)
	})
}
