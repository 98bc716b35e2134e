package ort

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWorkerPool(t *testing.T) {
	for _, threads := range []int{0, 1, 3} {
		c := NewWorkerPool(threads)
		var sum, now, most atomic.Int64
		require.NoError(t, c.Do(t.Context(), 50, func(i int) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			sum.Add(int64(i))
			now.Add(-1)
			return nil
		}))
		assert.Equal(t, int64(49*50/2), sum.Load())
		assert.LessOrEqual(t, most.Load(), int64(max(threads, 1)))
		require.NoError(t, c.Do(t.Context(), 0, nil))

		first := errors.New("first")
		var calls atomic.Int64
		err := c.Do(t.Context(), 1000, func(i int) error {
			calls.Add(1)
			if i >= 5 {
				return errors.New("later")
			}
			if i == 4 {
				return first
			}
			return nil
		})
		assert.ErrorIs(t, err, first, "the error of the lowest index")
		assert.Less(t, calls.Load(), int64(1000))

		ctx, cancel := context.WithCancel(t.Context())
		assert.ErrorIs(t, c.Do(ctx, 1000, func(int) error { cancel(); return nil }), context.Canceled)

		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { assert.NoError(t, c.Do(t.Context(), 20, func(int) error { return nil })) })
		}
		both.Wait()
		c.Close()
		c.Close()
	}
}
