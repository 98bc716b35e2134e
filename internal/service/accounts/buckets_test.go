package accounts

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/billing"
)

// clock is a time that a test sets.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time          { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) move(d time.Duration)    { c.mu.Lock(); defer c.mu.Unlock(); c.t = c.t.Add(d) }
func newClock() *clock                   { return &clock{t: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }
func bucketsAt(c *clock, n int) *Buckets { b := NewBuckets(n); b.now = c.now; return b }

// TestBucketIsExact checks that for a burst and a stream over the limit,
// exactly burst + tps × t pass.
// It covers T16 of test/README.md.
func TestBucketIsExact(t *testing.T) {
	for _, l := range []billing.Limits{{TPS: 2, Burst: 4}, {TPS: 5, Burst: 10}, {TPS: 0.5, Burst: 1}, {TPS: 50, Burst: 100}, {TPS: 3, Burst: 7}} {
		c := newClock()
		b := bucketsAt(c, 1)
		take := func() time.Duration {
			wait, err := b.TakeToken(context.Background(), "a", l)
			require.NoError(t, err)
			return wait
		}
		passed := 0
		const ticks, tick = 8000, 5 * time.Millisecond // 40 s
		for range 3 * l.Burst {
			if take() == 0 {
				passed++
			}
		}
		assert.Equal(t, l.Burst, passed, "the burst for %+v", l)
		for range ticks {
			c.move(tick)
			if take() == 0 {
				passed++
			}
		}
		want := l.Burst + int(l.TPS*(ticks*tick).Seconds())
		assert.InDelta(t, want, passed, 1, "%+v", l)
		t.Logf("T16: tps %v, burst %d: %d of %d requests passed in 40 s, expected %d", l.TPS, l.Burst, passed, ticks+3*l.Burst, want)

		// The wait is exactly the time until the next request passes.
		for take() == 0 {
		}
		wait := take()
		require.Positive(t, wait)
		c.move(wait - time.Millisecond)
		assert.Positive(t, take())
		c.move(2 * time.Millisecond)
		assert.Zero(t, take())
	}
}

// TestBucketsServeConcurrentRequests: the burst of many simultaneous requests
// passes. The clock has no lock, which would hide a missing lock of the
// buckets.
func TestBucketsServeConcurrentRequests(t *testing.T) {
	now := newClock().now()
	b := NewBuckets(1)
	b.now = func() time.Time { return now }
	l := billing.Limits{TPS: 1, Burst: 100}
	var passed atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				if again, err := b.TakeToken(context.Background(), "a", l); err == nil && again == 0 {
					passed.Add(1)
				}
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, l.Burst, passed.Load())
}

func TestBucketsAreSeparate(t *testing.T) {
	b := bucketsAt(newClock(), 1)
	l := billing.Limits{TPS: 1, Burst: 1}
	for i := range 10 {
		wait, err := b.TakeToken(context.Background(), fmt.Sprint(i), l)
		require.NoError(t, err)
		assert.Zero(t, wait)
	}
}

func TestBucketFollowsChangedLimits(t *testing.T) {
	c := newClock()
	b := bucketsAt(c, 1)
	take := func(l billing.Limits) time.Duration {
		wait, err := b.TakeToken(context.Background(), "a", l)
		require.NoError(t, err)
		return wait
	}
	small, big := billing.Limits{TPS: 1, Burst: 1}, billing.Limits{TPS: 100, Burst: 100}
	assert.Zero(t, take(small))
	assert.Positive(t, take(small))
	c.move(10 * time.Millisecond)
	assert.Positive(t, take(big), "the old rate refilled a hundredth of a token")
	c.move(10 * time.Millisecond)
	assert.Zero(t, take(big))
}

// TestNoCallerWaitsForeverAfterAClockJump checks that no caller waits forever after a clock jumped
// back.
// It covers T26 of test/README.md.
func TestNoCallerWaitsForeverAfterAClockJump(t *testing.T) {
	c := newClock()
	b := bucketsAt(c, 1)
	l := billing.Limits{TPS: 2, Burst: 2}
	for range 2 {
		_, _ = b.TakeToken(context.Background(), "a", l)
	}
	c.move(-time.Hour)
	wait, err := b.TakeToken(context.Background(), "a", l)
	require.NoError(t, err)
	assert.LessOrEqual(t, wait, time.Second)
	c.move(wait)
	wait, _ = b.TakeToken(context.Background(), "a", l)
	assert.Zero(t, wait)
	t.Log("T26: after a jump of an hour backwards the next request passed within 1/tps")
}

func TestFrontEndsShareALimit(t *testing.T) {
	c := newClock()
	l := billing.Limits{TPS: 10, Burst: 20}
	passed := 0
	for range 4 {
		b := bucketsAt(c, 4)
		for range 20 {
			if wait, _ := b.TakeToken(context.Background(), "a", l); wait == 0 {
				passed++
			}
		}
	}
	assert.Equal(t, 20, passed)
}

func TestBucketsAreBounded(t *testing.T) {
	c := newClock()
	b := bucketsAt(c, 1)
	l := billing.Limits{TPS: 1, Burst: 1}
	for i := range maxBuckets + 10 {
		_, _ = b.TakeToken(context.Background(), strconv.Itoa(i), l)
	}
	assert.LessOrEqual(t, len(b.buckets), maxBuckets)
}

// TestBucketNeverExceedsItsRate checks that, in any history, at most burst + tps
// × length requests pass in any stretch of time.
func TestBucketNeverExceedsItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		b := bucketsAt(c, 1)
		l := billing.Limits{TPS: rapid.Float64Range(0.1, 50).Draw(t, "tps"), Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		var passed []time.Time
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			c.move(time.Duration(rapid.IntRange(0, 200).Draw(t, "pause")) * time.Millisecond)
			wait, err := b.TakeToken(context.Background(), "a", l)
			if err != nil || wait < 0 {
				t.Fatalf("%v %v", wait, err)
			}
			if wait == 0 {
				passed = append(passed, c.now())
			}
		}
		for i := range passed {
			for j := i; j < len(passed); j++ {
				most := float64(l.Burst) + l.TPS*passed[j].Sub(passed[i]).Seconds()
				if float64(j-i+1) > math.Floor(most+1e-6)+1e-9 {
					t.Fatalf("%d passed in %v with %+v", j-i+1, passed[j].Sub(passed[i]), l)
				}
			}
		}
	})
}
