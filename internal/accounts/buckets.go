package accounts

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets limits the accounts whose buckets are in memory.
const maxBuckets = 100_000

// Buckets are token buckets in the memory of this process.
type Buckets struct {
	share   float64 // share of the account's limits that this process may grant
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	now     func() time.Time
}

// NewBuckets returns the buckets of one of frontEnds processes that share the
// requests evenly; less than 2 means a single process.
func NewBuckets(frontEnds int) *Buckets {
	return &Buckets{share: 1 / float64(max(1, frontEnds)), buckets: map[string]*rate.Limiter{}, now: time.Now}
}

// TakeToken takes one token from an account's bucket, which holds of.Burst
// tokens and is refilled with of.TPS tokens per second. It returns 0 if the
// request may pass, otherwise how long until the next one might. The error is
// always nil.
func (b *Buckets) TakeToken(_ context.Context, account string, of Limits) (time.Duration, error) {
	limit := rate.Limit(of.TPS * b.share)
	size := max(1, int(math.Floor(float64(of.Burst)*b.share)))
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	l := b.buckets[account]
	if l == nil {
		if len(b.buckets) >= maxBuckets {
			b.forget(now)
		}
		l = rate.NewLimiter(limit, size)
		b.buckets[account] = l
	}
	if l.Limit() != limit {
		l.SetLimitAt(now, limit)
	}
	if l.Burst() != size {
		l.SetBurstAt(now, size)
	}
	r := l.ReserveN(now, 1)
	if !r.OK() {
		return time.Second, nil
	}
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, nil
	}
	return 0, nil
}

// forget drops the buckets that are full again, because a new one is
// equivalent. If there are none, it drops all: an extra burst is better than
// unlimited memory.
func (b *Buckets) forget(now time.Time) {
	for k, l := range b.buckets {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(b.buckets, k)
		}
	}
	if len(b.buckets) >= maxBuckets {
		clear(b.buckets)
	}
}
