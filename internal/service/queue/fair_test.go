package queue_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestTurnsAreFairAmongManyClaimers claims with 8 concurrent workers from 10
// accounts; the first has five times as many tasks as each other account.
// After every round the accounts' numbers of turns differ by at most one.
func TestTurnsAreFairAmongManyClaimers(t *testing.T) {
	const workers, others, rounds = 8, 9, 4
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		accounts := []string{f.Account}
		for i := range others {
			accounts = append(accounts, f.NewAccount(fmt.Sprint("other", i), 10000))
		}
		for i, account := range accounts {
			n := rounds
			if i == 0 {
				n *= 5
			}
			for range n {
				f.Add(func(r *tasks.Request) { r.Account = account })
			}
		}
		var mu sync.Mutex
		turns := map[string]int{}
		for round := 1; round < rounds; round++ {
			var left atomic.Int64
			left.Store(int64(len(accounts)))
			var wait sync.WaitGroup
			for i := range workers {
				wait.Go(func() {
					for left.Add(-1) >= 0 {
						c, err := f.Next(t.Context(), fmt.Sprint("w", i), "m")
						if !assert.NoError(t, err) || !assert.NotNil(t, c) {
							return
						}
						mu.Lock()
						turns[c.AccountID]++
						mu.Unlock()
					}
				})
			}
			wait.Wait()
			for i, account := range accounts {
				require.InDelta(t, round, turns[account], 1, "turns of account %d after round %d", i, round)
			}
		}
		f.Exact()
	})
}
