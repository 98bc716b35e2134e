package accounts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// TestSharedBucket checks that the bucket in the database passes burst + rate ×
// time, also when the clock jumps (T26). It covers T16 of test/README.md.
func TestSharedBucket(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := New(d, nil, func() time.Time { return now })
		l := billing.Limits{TPS: 5, Burst: 10}
		passed := 0
		for range 100 { // 10 s in steps of 100 ms
			for range 3 {
				wait, err := s.TakeToken(t.Context(), "a", l)
				require.NoError(t, err)
				if wait == 0 {
					passed++
				} else {
					require.LessOrEqual(t, wait, 200*time.Millisecond)
				}
			}
			now = now.Add(100 * time.Millisecond)
		}
		assert.InDelta(t, 10+5*9.9, passed, 1)
		now = now.Add(-time.Hour)
		_, err := s.TakeToken(t.Context(), "a", l)
		require.NoError(t, err)
		now = now.Add(200 * time.Millisecond)
		wait, err := s.TakeToken(t.Context(), "a", l)
		require.NoError(t, err)
		assert.Zero(t, wait, "T26: a clock that went back does not lock the account out")
		t.Logf("T16: %d of 300 requests in 10 s passed at rate 5, burst 10", passed)
	})
}
