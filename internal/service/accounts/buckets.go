package accounts

import (
	"context"
	"sync"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/db"
)

// maxBuckets limits the accounts whose buckets are in memory.
const maxBuckets = 100_000

// Buckets are token buckets in the memory of this process.
type Buckets struct {
	share   float64 // share of the account's limits that this process may grant
	mu      sync.Mutex
	buckets map[string]*limitedBucket
	now     func() time.Time
}

// limitedBucket is a bucket with the limits of its last request.
type limitedBucket struct {
	bucket
	limits billing.Limits
}

// NewBuckets returns the buckets of one of frontEnds processes that share the
// requests evenly; less than 2 means a single process.
func NewBuckets(frontEnds int) *Buckets {
	return &Buckets{share: 1 / float64(max(1, frontEnds)), buckets: map[string]*limitedBucket{}, now: time.Now}
}

// TakeToken takes one token from an account's bucket, which holds of.Burst
// tokens and is refilled with of.TPS tokens per second. It returns 0 if the
// request may pass, or else the wait until the next one might.
func (b *Buckets) TakeToken(_ context.Context, account string, of billing.Limits) (time.Duration, error) {
	own := billing.Limits{TPS: of.TPS * b.share, Burst: max(1, int(float64(of.Burst)*b.share))}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := db.Micros(b.now())
	l := b.buckets[account]
	if l == nil {
		if len(b.buckets) >= maxBuckets {
			b.forget(now)
		}
		l = &limitedBucket{fullBucket(now, own), own}
		b.buckets[account] = l
	}
	if l.limits != own { // the old limits applied until now
		l.refill(now, l.limits)
		l.limits = own
	}
	return l.take(now, own)
}

// forget drops the buckets that are full again, because a new one is
// equivalent. If there are none, it drops all: an extra burst is better than
// unlimited memory.
func (b *Buckets) forget(now int64) {
	for k, l := range b.buckets {
		if l.refill(now, l.limits); l.bucket == fullBucket(l.updated, l.limits) {
			delete(b.buckets, k)
		}
	}
	if len(b.buckets) >= maxBuckets {
		clear(b.buckets)
	}
}
