package tasks_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// endedRate is the number of tasks that all servers end in a second at length.
const endedRate = 200

// TestFinishedListsEachEndOnce: four servers of one database end tasks
// concurrently, with results and without, at length 200 a second for ten
// seconds (slower on a slower machine), while readers at all of them follow the
// cursor. A reader whose request is cut, or whose answer is lost, asks again
// from its last cursor. Each ended task is listed once, in the order of the
// numbers, and a task that is retried is listed again at its new end.
func TestFinishedListsEachEndOnce(t *testing.T) {
	each, pause := endedRate*10/4, 4*time.Second/endedRate
	if testing.Short() {
		each, pause = 20, 0
	}
	for name, source := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLitePath, "postgres": dbtest.PostgresSource} {
		t.Run(name, func(t *testing.T) {
			path := source(t)
			f := taskstest.New(t, dbtest.Open(t, path, db.Options{}))
			servers := []*tasks.Service{f.Service}
			for range 3 {
				c := f.Config
				if testing.Short() || name == "postgres" { // only in the long form; SQLite has one process
					c.DB = dbtest.Open(t, path, db.Options{})
				}
				s, err := tasks.New(c)
				require.NoError(t, err)
				servers = append(servers, s)
			}
			added := map[string]bool{}
			audio := f.Audio("audio of all tasks")
			for range each * len(servers) {
				added[f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = audio, 3 }).ID] = true
			}

			var left, cuts atomic.Int64
			left.Store(int64(len(added)))
			var ending, reading errgroup.Group
			begun := time.Now()
			for _, s := range servers {
				ending.Go(func() error { return endAll(t.Context(), s, &left, pause) })
				reading.Go(func() error {
					assert.Equal(t, added, readAll(t, s, f.Account, &left, &cuts))
					return nil
				})
			}
			require.NoError(t, ending.Wait())
			rate := float64(len(added)) / time.Since(begun).Seconds()
			require.NoError(t, reading.Wait())
			checkAfterwards(t, f, servers[3], len(added))
			t.Logf("%d tasks ended by %d servers, %.0f a second: each was listed once to each of %d readers, which were cut %d times", len(added), len(servers), rate, len(servers), cuts.Load())
		})
	}
}

// endAll ends the account's tasks, one in each pause, every third one without a
// result.
func endAll(ctx context.Context, s *tasks.Service, left *atomic.Int64, pause time.Duration) error {
	begun := time.Now()
	for n := 0; left.Load() > 0; n++ {
		time.Sleep(time.Until(begun.Add(time.Duration(n) * pause)))
		c, err := s.Next(ctx, "worker", "set")
		if err != nil || c == nil {
			return err
		}
		if n%3 == 2 {
			err = s.Release(ctx, c, tasks.EndPermanent, "x")
		} else {
			err = s.Complete(ctx, c, tasks.Outcome{Seconds: 3})
		}
		if err != nil {
			return err
		}
		left.Add(-1)
	}
	return nil
}

// readAll follows the cursor until all tasks have ended and been read, and
// returns the ids. Every eighth request is cut, and every eighth answer lost.
func readAll(t *testing.T, s *tasks.Service, account string, left, cuts *atomic.Int64) map[string]bool {
	read, cursor := map[string]bool{}, int64(0)
	for n := 0; ; n++ {
		over := left.Load() <= 0
		ctx, cut := context.WithCancel(t.Context())
		if n%8 == 7 {
			time.AfterFunc(time.Duration(n%64)*20*time.Microsecond, cut)
		}
		list, next, _, err := s.Finished(ctx, account, "", cursor, 7)
		cut()
		time.Sleep(time.Millisecond) // the servers have work to do
		if n%8 == 3 || n%8 == 7 && err != nil {
			cuts.Add(1)
			continue
		}
		if !assert.NoError(t, err) {
			return nil
		}
		assert.GreaterOrEqual(t, next, cursor)
		cursor = next
		for _, task := range list {
			assert.True(t, task.Final())
			assert.False(t, read[task.ID], "%s is listed twice", task.ID)
			read[task.ID] = true
		}
		if over && len(list) == 0 {
			return read
		}
	}
}

// checkAfterwards checks filters, bounds and a task that ends again.
func checkAfterwards(t *testing.T, f *taskstest.Fixture, s *tasks.Service, all int) {
	t.Helper()
	failed, next, ended, err := s.Finished(t.Context(), f.Account, tasks.StatusFailed, 0, all)
	require.NoError(t, err)
	assert.Equal(t, all, ended)
	assert.Len(t, failed, f.Count("SELECT COUNT(*) FROM tasks WHERE status = 'failed' AND account_id = $1", f.Account))
	none, same, _, err := s.Finished(t.Context(), f.Account, tasks.StatusFailed, next, 10)
	require.NoError(t, err)
	assert.Empty(t, none)
	assert.Equal(t, next, same)
	_, _, _, err = s.Finished(t.Context(), f.Account, "", int64(all)+1, 10)
	require.ErrorIs(t, err, tasks.ErrCursor)

	f.Exec("UPDATE tasks SET audio_source_type = 'url' WHERE id = $1", failed[0].ID)
	_, err = f.Retry(t.Context(), failed[0].ID)
	require.NoError(t, err)
	list, _, _, err := s.Finished(t.Context(), f.Account, "", int64(all), 10)
	require.NoError(t, err)
	assert.Empty(t, list)
	_, err = f.Cancel(t.Context(), failed[0].ID)
	require.NoError(t, err)
	list, next, _, err = s.Finished(t.Context(), f.Account, "", int64(all), 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, failed[0].ID, list[0].ID)
	assert.EqualValues(t, all+1, next)
}
