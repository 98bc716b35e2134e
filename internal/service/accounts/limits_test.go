package accounts

import (
	"database/sql"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

func TestLimitsOfTiersAndOverrides(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := New(d, nil, func() time.Time { return now })
		money := billing.New(d.Read(), d, func() time.Time { return now })
		account, err := s.Create(t.Context(), "limited")
		require.NoError(t, err)
		a := account.ID
		check := func(want billing.Limits) {
			t.Helper()
			got, err := money.View(t.Context(), a)
			require.NoError(t, err)
			assert.Equal(t, want, got.Limits)
		}
		for _, want := range []billing.Limits{{Tier: 1, Concurrency: 2, TPS: 2, Burst: 4}, {Tier: 2, Concurrency: 5, TPS: 5, Burst: 10}, {Tier: 3, Concurrency: 10, TPS: 10, Burst: 20}, {Tier: 4, Concurrency: 20, TPS: 20, Burst: 40}, {Tier: 5, Concurrency: 50, TPS: 50, Burst: 100}} {
			require.NoError(t, s.SetTier(t.Context(), a, want.Tier))
			check(want)
		}
		require.ErrorIs(t, s.SetTier(t.Context(), a, 0), ErrInvalid)
		require.ErrorIs(t, s.SetTier(t.Context(), a, 6), ErrInvalid)
		require.ErrorIs(t, s.SetTier(t.Context(), "nobody", 1), ErrNotFound)
		one, rate, burst := 1, 0.5, 3
		require.NoError(t, s.SetLimits(t.Context(), a, Overrides{Concurrency: &one, TPS: &rate, Burst: &burst}))
		check(billing.Limits{Tier: 5, Concurrency: 1, TPS: 0.5, Burst: 3})
		bad, none := math.NaN(), 0
		require.ErrorIs(t, s.SetLimits(t.Context(), a, Overrides{TPS: &bad}), ErrInvalid)
		require.ErrorIs(t, s.SetLimits(t.Context(), a, Overrides{Burst: &none}), ErrInvalid)
		_, err = money.View(t.Context(), "nobody")
		require.ErrorIs(t, err, billing.ErrNoAccount)

		// A pack raises the concurrency while it lasts.
		require.NoError(t, d.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO packs (id, account_id, value, remaining, concurrency, expires_at, created_at) VALUES ('p', $1, 0, 0, 7, $2, 0)",
				a, db.Micros(now.Add(time.Hour)))
			return err
		}))
		check(billing.Limits{Tier: 5, Concurrency: 7, TPS: 0.5, Burst: 3})
		now = now.Add(time.Hour)
		check(billing.Limits{Tier: 5, Concurrency: 1, TPS: 0.5, Burst: 3})
	})
}
