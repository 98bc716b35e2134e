package backoff_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/system/backoff"
)

var errBroken = errors.New("broken")

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, calls := time.Now(), 0
		err := backoff.Every(t.Context(), time.Hour, func() error {
			if calls++; calls == 3 {
				return errBroken
			}
			return nil
		})
		assert.Equal(t, errBroken, err)
		assert.Equal(t, 3*time.Hour, time.Since(begun))

		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		calls = 0
		assert.NoError(t, backoff.Every(ctx, time.Hour, func() error { calls++; return nil }))
		assert.Equal(t, 1, calls)
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := make(chan struct{}, 1)
		full <- struct{}{}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		backoff.Wait(ended, time.Hour, nil, nil)
		backoff.Wait(t.Context(), time.Hour, full, nil)
		full <- struct{}{}
		backoff.Wait(t.Context(), time.Hour, nil, full)
		assert.Zero(t, time.Since(begun))
		backoff.Wait(t.Context(), time.Hour, full, full)
		assert.Equal(t, time.Hour, time.Since(begun))
		other := make(chan struct{}, 1)
		full <- struct{}{}
		other <- struct{}{}
		backoff.Wait(t.Context(), time.Hour, full, other)
		assert.Equal(t, time.Hour, time.Since(begun))
		assert.Empty(t, full, "one wait drains both channels")
		assert.Empty(t, other, "one wait drains both channels")
	})
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passing := func(err error) bool { return errors.Is(err, errBroken) }
		begun, calls := time.Now(), 0
		assert.NoError(t, backoff.Retry(t.Context(), passing, func(context.Context) error {
			if calls++; calls < 9 {
				return errBroken
			}
			return nil
		}))
		assert.Equal(t, (100+200+400+800+1600+3200+5000+5000)*time.Millisecond, time.Since(begun))
		lasting := errors.New("lasting")
		assert.Equal(t, lasting, backoff.Retry(t.Context(), passing, func(context.Context) error { return lasting }))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		assert.Equal(t, errBroken, backoff.Retry(ctx, passing, func(context.Context) error { return errBroken }))
	})
}
