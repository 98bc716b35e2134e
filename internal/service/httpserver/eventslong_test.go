//go:build long

package httpserver

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// TestLongManyFollowers: 200 clients follow a task each, and fifty of them read
// nothing, while a worker reports progress; every reading client receives the
// end. The time of other requests is logged.
func TestLongManyFollowers(t *testing.T) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			const followers, deaf = 200, 50
			w := newWorldOn(t, open(t, db.Options{}))
			var ids []string
			for range followers {
				ids = append(ids, w.create(upload(nil)))
			}
			idle := w.askFor(t, 3*time.Second)
			var all []*follower
			for _, id := range ids {
				all = append(all, w.follow(id, ""))
			}
			c := w.claim("worker")
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { // five times as often as a worker does
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Millisecond):
						_ = w.tasks.Report(t.Context(), c, queue.Progress{Stage: "transcribe", Fraction: float64(i%100) / 100})
					}
				}
			})
			busy := w.askFor(t, 10*time.Second)
			close(stop)
			wg.Wait()
			for c != nil {
				require.NoError(t, w.tasks.Complete(t.Context(), c, shortResult))
				var err error
				c, err = w.tasks.Next(t.Context(), "worker", "set")
				require.NoError(t, err)
			}
			for _, f := range all[deaf:] {
				final := false
				for {
					_, state, ok := f.next()
					if !ok {
						break
					}
					final = final || state.Final
				}
				assert.True(t, final)
			}
			t.Logf("other requests: 99 of 100 within %s without followers, within %s with %d", idle, busy, followers)
		})
	}
}

// askFor requests the account repeatedly for a time and returns the 99th
// percentile of the response times.
func (w *world) askFor(t *testing.T, long time.Duration) time.Duration {
	var took []time.Duration
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		start := time.Now()
		require.Equal(t, 200, w.do("GET", "/account", nil).status)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}
