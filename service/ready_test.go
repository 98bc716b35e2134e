package service

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadinessFollowsTheStore checks the readiness with a working database and
// a store that hangs, fails, and works again.
func TestReadinessFollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		// A hanging check may still run when the test replaces it.
		var current atomic.Pointer[func(context.Context) error]
		put := func(store func(context.Context) error) { current.Store(&store) }
		put(func(context.Context) error { return nil })
		r := newReadiness(map[string]func(context.Context) error{
			"database": func(context.Context) error { asked.Add(1); return nil },
			"store":    func(ctx context.Context) error { return (*current.Load())(ctx) },
		})
		require.NoError(t, r.check(t.Context()))

		put(func(ctx context.Context) error { time.Sleep(time.Minute); return nil }) // ignores the context
		time.Sleep(readyAge)
		var wait sync.WaitGroup
		begun := time.Now()
		for range 20 {
			wait.Go(func() {
				err := r.check(t.Context())
				assert.ErrorContains(t, err, "store: no response within 2s")
				assert.NotContains(t, err.Error(), "database")
			})
		}
		wait.Wait()
		assert.Equal(t, readyLimit, time.Since(begun), "20 callers wait for one check")
		assert.EqualValues(t, 2, asked.Load())

		put(func(context.Context) error { return errors.New("no such bucket") })
		time.Sleep(readyAge)
		assert.ErrorContains(t, r.check(t.Context()), "store: no such bucket")
		put(func(context.Context) error { return nil })
		time.Sleep(readyAge)
		require.NoError(t, r.check(t.Context()))
		time.Sleep(time.Minute) // the sleeper ends
	})
}

// TestReadinessBlamesTheHangingCheck checks that checks that passed are not
// named, in whatever order the answers are read.
func TestReadinessBlamesTheHangingCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := map[string]func(context.Context) error{
			"store": func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return nil },
		}
		for i := range 20 {
			checks[strconv.Itoa(i)] = func(context.Context) error { return nil }
		}
		require.EqualError(t, newReadiness(checks).check(t.Context()), "store: no response within 2s")
		time.Sleep(time.Minute) // the hanging check ends
	})
}
