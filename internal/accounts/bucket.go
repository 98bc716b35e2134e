package accounts

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/otograph/otograph/internal/db"
)

// TakeToken takes one token from the account's bucket in the database, which
// several front ends share. It returns 0 if the request may pass, otherwise how
// long to wait for the next token. A clock that moved back adds and removes no
// tokens.
func (s *Store) TakeToken(ctx context.Context, account string, l Limits) (wait time.Duration, err error) {
	const whole = 1000 // tokens are kept in thousandths
	capacity := int64(l.Burst) * whole
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		now := db.Micros(s.clock())
		if _, err := tx.ExecContext(ctx, "INSERT INTO rate_buckets (account_id, tokens_thousandths, updated_at) VALUES ($1, $2, $3) ON CONFLICT (account_id) DO NOTHING", account, capacity, now); err != nil {
			return err
		}
		var tokens, updated int64
		if err := tx.QueryRowContext(ctx, "SELECT tokens_thousandths, updated_at FROM rate_buckets WHERE account_id = $1"+s.db.ForUpdate(), account).Scan(&tokens, &updated); err != nil {
			return err
		}
		gained := int64(min(float64(capacity), float64(max(0, now-updated))*l.TPS*whole/1e6))
		tokens = min(capacity, tokens+gained)
		if gained == 0 && now > updated {
			now = updated // too little time for a thousandth of a token: let it accumulate
		}
		wait = 0
		if tokens < whole {
			if l.TPS <= 0 {
				return errors.New("rate limit without a rate")
			}
			wait = time.Duration(math.Ceil(float64(whole-tokens) / whole / l.TPS * float64(time.Second)))
		} else {
			tokens -= whole
		}
		_, err := tx.ExecContext(ctx, "UPDATE rate_buckets SET tokens_thousandths = $2, updated_at = $3 WHERE account_id = $1", account, tokens, now)
		return err
	})
	return wait, s.wrap("rate bucket", err)
}
