package worker_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestAcceptedTasksAreDownloadedImmediately: the transaction that accepts a
// task also claims its download, within the shares of accounts and while
// neither the fetcher nor the lane is paused; all other tasks wait their turn.
// Concurrent or refused acceptances leave no slot occupied.
func TestAcceptedTasksAreDownloadedImmediately(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		let := make(chan struct{}) // sources answer once it is closed
		source := taskstest.DoerFunc(func(r *http.Request) (*http.Response, error) {
			select {
			case <-let:
				return minuteSource(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		stop := f.StartFetcher(worker.FetcherConfig{HTTP: source, PerAccount: 2, AtOnce: 40})
		running := func(task tasks.Task) int {
			return f.Count("SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase = 'running' AND lane = 'fetch' AND attempt = 1", task.ID)
		}
		byURL := func(account string) tasks.Task {
			return f.Add(func(r *tasks.Request) { r.Account, r.URL = account, "https://source.example/a.wav" })
		}
		first := byURL(f.Account) // the fetcher may not be running yet
		require.Eventually(t, func() bool { return running(first) == 1 }, time.Minute, 5*time.Millisecond)
		assert.Equal(t, 1, running(byURL(f.Account)), "claimed with its acceptance")
		crowded := byURL(f.Account)
		assert.Zero(t, running(crowded), "the account has reached its share")

		poor := f.NewAccount("poor", 0)
		_, _, err := f.Create(t.Context(), f.Request(func(r *tasks.Request) { r.Account, r.URL = poor, "https://source.example/a.wav" }), tasks.Idempotency{})
		require.ErrorIs(t, err, billing.ErrInsufficientBalance)
		require.NoError(t, f.Queue().SetPaused(t.Context(), queue.LaneFetch, true))
		paused := byURL(f.NewAccount("paused", billing.Unit))
		assert.Zero(t, running(paused))
		require.NoError(t, f.Queue().SetPaused(t.Context(), queue.LaneFetch, false))

		many := f.NewAccount("many", 100*billing.Unit)
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() { byURL(many) })
		}
		wait.Wait()
		assert.LessOrEqual(t, f.Count("SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND phase = 'running'", many), 2)
		close(let)
		f.Start(1, worker.Config{Engine: taskstest.Quick})
		require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM tasks WHERE status = 'done'") == 24 }, time.Minute, 5*time.Millisecond)
		stop()
		after := byURL(f.Account)
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase = 'queued' AND attempt = 0", after.ID), "no fetcher runs here any more")
		f.Exact()
	})
}

// TestUnconfirmedAcceptanceIsHandedBack loses the response to the commit that
// accepts a task and claims its download: the customer gets an error, and the
// task, which was accepted, is downloaded, uncounted.
func TestUnconfirmedAcceptanceIsHandedBack(t *testing.T) {
	f, b := brittle(t)
	f.StartFetcher(worker.FetcherConfig{HTTP: minuteSource, Heartbeat: time.Hour})
	f.Start(1, worker.Config{Engine: taskstest.Quick, Heartbeat: time.Hour})
	byURL := func(r *tasks.Request) { r.URL = "https://source.example/a.wav" }
	require.Equal(t, tasks.StatusDone, f.WaitFor(f.Add(byURL).ID).Status)
	commits := 0
	b.set(func(op string) (bool, bool) {
		if op == "commit" {
			commits++
		}
		return op == "commit" && commits == 1, true
	})
	_, _, err := f.Create(t.Context(), f.Request(byURL), tasks.Idempotency{})
	require.ErrorIs(t, err, errBroken)
	require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM tasks WHERE status = 'done'") == 2 }, time.Minute, 5*time.Millisecond)
	assert.Equal(t, 3, f.Count("SELECT MAX(attempt) FROM tasks"), "the download was claimed twice, then the task")
	assert.Zero(t, f.Count("SELECT SUM(failures + interruptions) FROM tasks"))
	f.Exact()
}
