package accounts

import (
	"context"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

// Overrides replace an account's limits; nil keeps the tier's.
type Overrides struct {
	Concurrency *int     // ≥ 0
	TPS         *float64 // > 0, stored in thousandths
	Burst       *int     // ≥ 1
}

// SetTier moves the account (its id) to a tier from 1 to 5. Errors wrap
// ErrInvalid or ErrNotFound.
func (s *Store) SetTier(ctx context.Context, account string, tier int) error {
	if tier < 1 || tier > 5 {
		return fmt.Errorf("tier %d %w: want 1 to 5", tier, ErrInvalid)
	}
	return s.one(ctx, "tier of account "+account, "UPDATE accounts SET tier = $2 WHERE id = $1", account, tier)
}

// SetLimits replaces all overrides of the account (its id). Errors wrap
// ErrInvalid or ErrNotFound.
func (s *Store) SetLimits(ctx context.Context, account string, o Overrides) error {
	var tps any
	if n := o.Concurrency; n != nil && (*n < 0 || *n > 1_000_000) {
		return fmt.Errorf("concurrency %d %w: want 0 to 1,000,000", *n, ErrInvalid)
	}
	if o.TPS != nil {
		if !(*o.TPS >= 0.001 && *o.TPS <= 1_000_000) {
			return fmt.Errorf("tps %v %w: want 0.001 to 1,000,000", *o.TPS, ErrInvalid)
		}
		tps = int64(*o.TPS*1000 + 0.5)
	}
	if n := o.Burst; n != nil && (*n < 1 || *n > 1_000_000) {
		return fmt.Errorf("burst %d %w: want 1 to 1,000,000", *n, ErrInvalid)
	}
	return s.one(ctx, "limits of account "+account, "UPDATE accounts SET concurrency = $2, tps_thousandths = $3, burst = $4 WHERE id = $1", account, o.Concurrency, tps, o.Burst)
}

// SetRetention sets how long the tasks of the account (its id) are kept after
// their end, at least a day; 0 is as long as the service keeps all tasks.
// Errors wrap ErrInvalid or ErrNotFound.
func (s *Store) SetRetention(ctx context.Context, account string, keep time.Duration) error {
	if keep != 0 && keep < 24*time.Hour {
		return fmt.Errorf("keep-tasks %s %w: want at least 24h, or 0", keep, ErrInvalid)
	}
	return s.one(ctx, "retention of account "+account, "UPDATE accounts SET keep_tasks = $2 WHERE id = $1", account, db.Optional(keep.Microseconds()))
}
