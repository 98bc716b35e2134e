package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestLivingWorkersHaveHeartbeats checks that a silent worker of another
// machine stops counting as living long before it is considered dead, and that
// other members and ended processes do not count.
func TestLivingWorkersHaveHeartbeats(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		for id, kind := range map[string]queue.Kind{"here": queue.Worker, "elsewhere": queue.Worker, "gone": queue.Worker, "n": queue.Notifier} {
			stop, err := f.Queue().Enter(t.Context(), queue.Member{ID: id, Kind: kind, Supervisor: "s"}, time.Hour, nil)
			require.NoError(t, err)
			defer stop()
		}
		f.Exec("UPDATE workers SET host = 'another machine' WHERE id = 'elsewhere'")
		f.Exec("UPDATE workers SET pid_start = '1' WHERE id = 'gone'")
		const after = time.Hour
		var lost []string
		w := f.Queue().NewWatch(after, time.Hour, func(_ context.Context, id, _ string) error {
			lost = append(lost, id)
			return nil
		})
		_, err := w.Look(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, w.Living(), "the local and the remote worker")

		quick := f.Queue().NewWatch(time.Second, time.Hour, func(context.Context, string, string) error { return nil })
		_, err = quick.Look(t.Context())
		require.NoError(t, err)
		time.Sleep(450 * time.Millisecond)
		f.Exec("UPDATE workers SET beats = beats + 1 WHERE id = 'here'")
		_, err = quick.Look(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, quick.Living(), "only the local worker has a new heartbeat")
		assert.Equal(t, []string{"gone"}, lost)
	})
}
