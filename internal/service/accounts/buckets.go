package accounts

import (
	"context"
	"database/sql"
	"errors"
	"math"
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
	if l.limits != own { // until this request the old limits applied
		l.refill(now, l.limits)
		l.limits = own
	}
	return l.take(now, own)
}

// forget drops the buckets that are full again: a new bucket is the same. If
// there are none, it drops all, because an extra burst is better than unlimited
// memory.
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

// thousandths is the resolution of buckets: they count thousandths of a token.
const thousandths = 1000

type bucket struct {
	tokens  int64 // in thousandths
	updated int64 // the time of tokens, in microseconds since 1970
}

func fullBucket(now int64, l billing.Limits) bucket { return bucket{int64(l.Burst) * thousandths, now} }

// refill adds the whole thousandths since the last update. A clock that moved
// back changes nothing.
func (b *bucket) refill(now int64, l billing.Limits) {
	capacity := int64(l.Burst) * thousandths
	perMicrosecond := l.TPS * thousandths / 1e6
	gained := int64(min(float64(capacity), float64(max(0, now-b.updated))*perMicrosecond))
	b.tokens += gained
	switch {
	case b.tokens >= capacity || now < b.updated:
		b.tokens, b.updated = min(capacity, b.tokens), now
	case gained > 0:
		b.updated += int64(math.Ceil(float64(gained) / perMicrosecond))
	}
}

// take takes one token and returns 0, or else the wait for the next token.
func (b *bucket) take(now int64, l billing.Limits) (wait time.Duration, err error) {
	b.refill(now, l)
	if b.tokens >= thousandths {
		b.tokens -= thousandths
		return 0, nil
	}
	if l.TPS <= 0 {
		return 0, errors.New("rate limit without a rate")
	}
	return time.Duration(math.Ceil(float64(thousandths-b.tokens) / thousandths / l.TPS * float64(time.Second))), nil
}

// TakeToken takes one token from the account's bucket in the database, which
// front ends share. It returns 0 for a pass, or else the wait for a token.
func (s *Store) TakeToken(ctx context.Context, account string, l billing.Limits) (wait time.Duration, err error) {
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		now := db.Micros(s.clock())
		b := fullBucket(now, l)
		if _, err := tx.ExecContext(ctx, "INSERT INTO rate_buckets (account_id, tokens_thousandths, updated_at) VALUES ($1, $2, $3) ON CONFLICT (account_id) DO NOTHING", account, b.tokens, b.updated); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "SELECT tokens_thousandths, updated_at FROM rate_buckets WHERE account_id = $1"+s.db.ForUpdate(), account).Scan(&b.tokens, &b.updated); err != nil {
			return err
		}
		var err error
		if wait, err = b.take(now, l); err != nil {
			return err
		}
		return db.Do(ctx, tx, "UPDATE rate_buckets SET tokens_thousandths = $2, updated_at = $3 WHERE account_id = $1", account, b.tokens, b.updated)
	})
	return wait, s.wrap("rate bucket", err)
}
