package billing

import "database/sql"

// Limits are an account's rates and caps.
type Limits struct {
	Tier        int
	Concurrency int     // concurrent non-batch tasks, including the packs' bonus
	TPS         float64 // requests per second
	Burst       int     // requests at once
}

// tierLimits are the defaults of the tiers 1 to 5; the burst is twice the rate.
var tierLimits = [...]int{1: 2, 2: 5, 3: 10, 4: 20, 5: 50}

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
