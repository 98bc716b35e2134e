package tasks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestOverdrawnAccountsWait takes credit from an account whose tasks wait:
// other accounts are served, and the tasks continue once there is credit again.
func TestOverdrawnAccountsWait(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now()
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		for i, tt := range []struct {
			name  string
			batch bool
			lower func(f *taskstest.Fixture, account string, clock *time.Time)
			lift  func(f *taskstest.Fixture, account, task string) error
		}{
			{"refund and recharge", false, refund, recharge},
			{"refund and recharge, batch", true, refund, recharge},
			{"refund and pack", false, refund, func(f *taskstest.Fixture, account, _ string) error {
				_, err := f.Billing().AddPack(f.T.Context(), account, billing.Pack{Value: billing.Unit, ExpiresAt: f.Config.Clock().Add(time.Hour)})
				return err
			}},
			{"pack that expires and recharge", false, func(f *taskstest.Fixture, account string, clock *time.Time) {
				_, err := f.Billing().AddPack(f.T.Context(), account, billing.Pack{Value: 130, ExpiresAt: clock.Add(time.Minute)})
				require.NoError(f.T, err)
				refund(f, account, clock)
				*clock = clock.Add(time.Hour)
			}, recharge},
		} {
			t.Run(tt.name, func(t *testing.T) {
				account := f.NewAccount(fmt.Sprint("poor", i), 300)
				add := func(account string) tasks.Task {
					return f.Add(func(r *tasks.Request) { r.Account, r.Batch, r.URL = account, tt.batch, "https://source.example/a" })
				}
				first, second := add(account), add(account)
				tt.lower(f, account, &clock)
				other := add(f.Account)
				c := f.Take()
				require.NotNil(t, c)
				assert.Equal(t, other.ID, c.ID)
				require.NoError(t, f.Release(t.Context(), c, tasks.EndPermanent, "x"))
				assert.Nil(t, f.Take(), "the overdrawn account's tasks wait")
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM lane_accounts WHERE account_id = $1 AND stopped", account))
				clock = clock.Add(21 * time.Hour)
				assert.Nil(t, f.Take(), "including a batch task that has waited long")
				require.NoError(t, tt.lift(f, account, second.ID))
				c = f.Take()
				require.NotNil(t, c)
				assert.Equal(t, first.ID, c.ID)
				require.NoError(t, f.Complete(t.Context(), c, tasks.Outcome{Tier: "standard", Seconds: 60}))
				f.Exact()
				for c := f.Take(); c != nil; c = f.Take() { // for the next case, which uses the same store
					require.NoError(t, f.Release(t.Context(), c, tasks.EndPermanent, "x"))
				}
			})
		}
	})
}

// refund leaves 0.0100, less than the holds of two one-minute tasks.
func refund(f *taskstest.Fixture, account string, _ *time.Time) {
	_, err := f.Billing().Refund(f.T.Context(), account, 200, "")
	require.NoError(f.T, err)
}

func recharge(f *taskstest.Fixture, account, _ string) error {
	_, err := f.Billing().Recharge(f.T.Context(), account, billing.Unit, "")
	return err
}

// TestReleasedHoldLetsOthersRun: an account can pay for one of its two tasks;
// when the running one ends without a charge, the other runs.
func TestReleasedHoldLetsOthersRun(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		account := f.NewAccount("a", 300)
		for range 2 {
			f.Add(func(r *tasks.Request) { r.Account, r.URL = account, "https://source.example/a" })
		}
		running := f.Take()
		refund(f, account, nil)
		_, err := f.Billing().Recharge(t.Context(), account, 50, "")
		require.NoError(t, err)
		require.Nil(t, f.Take())
		require.NoError(t, f.Release(t.Context(), running, tasks.EndPermanent, "not audio"))
		assert.NotNil(t, f.Take())
	})
}
