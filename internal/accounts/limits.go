package accounts

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/otograph/otograph/internal/db"
)

// Limits are an account's rates and caps.
type Limits struct {
	Tier        int
	Concurrency int     // concurrent non-batch tasks, including the packs' bonus
	TPS         float64 // requests per second
	Burst       int     // requests at once
}

// tierLimits are the defaults of the tiers 1 to 5; the burst is twice the rate.
var tierLimits = [...]int{1: 2, 2: 5, 3: 10, 4: 20, 5: 50}

// Overrides replace an account's limits; nil keeps the tier's.
type Overrides struct {
	Concurrency *int     // ≥ 0
	TPS         *float64 // > 0, stored in thousandths
	Burst       *int     // ≥ 1
}

// LimitsOf returns the limits of an account with the given tier (1 to 5) and
// overrides (TPS in thousandths), whose resource packs raise its concurrency to
// at least bonus.
func LimitsOf(tier int, concurrency, tps, burst sql.NullInt64, bonus int) Limits {
	base := tierLimits[tier]
	l := Limits{Tier: tier, Concurrency: base, TPS: float64(base), Burst: 2 * base}
	if concurrency.Valid {
		l.Concurrency = int(concurrency.Int64)
	}
	l.Concurrency = max(l.Concurrency, bonus)
	if tps.Valid {
		l.TPS = float64(tps.Int64) / 1000
		l.Burst = max(1, int(2*l.TPS))
	}
	if burst.Valid {
		l.Burst = int(burst.Int64)
	}
	return l
}

// Limits returns the effective limits of the account (its id). Errors wrap
// ErrNotFound.
func (s *Store) Limits(ctx context.Context, account string) (Limits, error) {
	var tier, bonus int
	var concurrency, tps, burst sql.NullInt64
	err := s.db.Read().QueryRowContext(ctx, `SELECT tier, concurrency, tps_thousandths, burst,
		COALESCE((SELECT MAX(concurrency) FROM packs WHERE account_id = a.id AND expires_at > $2), 0)
		FROM accounts a WHERE id = $1`, account, db.Micros(s.clock())).Scan(&tier, &concurrency, &tps, &burst, &bonus)
	if err != nil {
		return Limits{}, s.wrap("limits of account "+account, err)
	}
	return LimitsOf(tier, concurrency, tps, burst, bonus), nil
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
	var concurrency, tps, burst any
	if o.Concurrency != nil {
		if *o.Concurrency < 0 || *o.Concurrency > 1_000_000 {
			return fmt.Errorf("concurrency %d %w: want 0 to 1,000,000", *o.Concurrency, ErrInvalid)
		}
		concurrency = *o.Concurrency
	}
	if o.TPS != nil {
		if !(*o.TPS >= 0.001 && *o.TPS <= 1_000_000) {
			return fmt.Errorf("tps %v %w: want 0.001 to 1,000,000", *o.TPS, ErrInvalid)
		}
		tps = int64(*o.TPS*1000 + 0.5)
	}
	if o.Burst != nil {
		if *o.Burst < 1 || *o.Burst > 1_000_000 {
			return fmt.Errorf("burst %d %w: want 1 to 1,000,000", *o.Burst, ErrInvalid)
		}
		burst = *o.Burst
	}
	return s.one(ctx, "limits of account "+account, "UPDATE accounts SET concurrency = $2, tps_thousandths = $3, burst = $4 WHERE id = $1", account, concurrency, tps, burst)
}
