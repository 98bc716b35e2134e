package httpserver

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
)

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time       { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) move(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.t = c.t.Add(d) }
func newClock() *clock                { return &clock{t: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// TestRateLimitOverHTTP sends a burst to a real server: exactly the burst
// passes, for requests of every kind alike, and Retry-After is right. It covers
// T16 of test/README.md.
func TestRateLimitOverHTTP(t *testing.T) {
	for _, store := range []string{"memory", "database"} {
		t.Run(store, func(t *testing.T) {
			w := newWorld(t, func(c *Config) {
				if store == "database" {
					c.Rate = c.Accounts
				}
			})
			tps, burst := 0.001, 10 // a token in 1,000 s: none is refilled during the test
			require.NoError(t, w.accounts.SetLimits(context.Background(), w.account.ID, accounts.Overrides{TPS: &tps, Burst: &burst}))
			var passed, limited atomic.Int64
			requests := [][2]string{
				{"GET", "/account"},
				{"GET", "/tasks"},
				{"GET", "/tasks/01a1fe6c-4156-7cc0-98a4-f4501faaa7d1"},
				{"GET", "/billing/transactions"},
				{"GET", "/pricing"},
				{"GET", "/nope"},
				{"GET", "//account"},
				{"PATCH", "/tasks"},
				{"DELETE", "/pricing"},
				{"GET", "/auth/login"},
			}
			var wg sync.WaitGroup
			for i := range 40 {
				wg.Go(func() {
					q := requests[i%len(requests)]
					a := w.do(q[0], q[1], nil)
					if a.status != 429 {
						passed.Add(1)
						return
					}
					limited.Add(1)
					assert.Equal(t, codeRateLimited, a.code(t))
					seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
					assert.NoError(t, err)
					assert.True(t, seconds > 900 && seconds <= 1000, "%d", seconds)
				})
			}
			wg.Wait()
			assert.EqualValues(t, burst, passed.Load())
			a := w.do("POST", "/tasks", upload(nil))
			assert.Equal(t, 429, a.status)
			_, other := w.newAccount("other", "1")
			assert.Equal(t, 200, w.do("GET", "/account", nil, with("X-Api-Key", other)).status)
			assert.Equal(t, 200, w.do("GET", "/pricing", nil, noKey).status, "no account, no bucket")
			t.Logf("T16: %d of 40 parallel requests passed with burst %d and tps %v, %d got 429 with Retry-After", passed.Load(), burst, tps, limited.Load())
		})
	}
}
