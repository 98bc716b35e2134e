package billing

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/otograph/otograph/spec"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		_ = flag.Set("rapid.checks", strconv.Itoa(histories))
	}
	os.Exit(dbtest.Main(m))
}

func addAccount(t require.TestingT, s *Store, name string) string {
	id := uuid.NewString()
	require.NoError(t, s.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, 0)", id, name+id)
		return err
	}))
	return id
}

func hold(s *Store, account, task string, amount Money, batch bool) error {
	return s.db.Write(context.Background(), func(tx *sql.Tx) error {
		return s.Hold(context.Background(), tx, account, task, amount, batch)
	})
}

func settle(s *Store, account, task string, q Quote, batch bool) (r Receipt, err error) {
	err = s.db.Write(context.Background(), func(tx *sql.Tx) error {
		r, err = s.Settle(context.Background(), tx, account, task, q, batch)
		return err
	})
	return r, err
}

func quoteOf(total Money) Quote {
	return Quote{Mode: spec.TierStandard, Minutes: 1, Total: total, Detail: Detail{BaseAmount: total, Subtotal: total, Total: total}}
}

func TestRechargeRefundAndLedger(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := New(d, nil)
		a := addAccount(t, s, "a")
		_, err := s.Recharge(t.Context(), a, 100*Unit, "card")
		require.NoError(t, err)
		refund, err := s.Refund(t.Context(), a, 150*Unit, "paid back")
		require.NoError(t, err)
		assert.Equal(t, -50*Unit, refund.BalanceAfter)
		for _, amount := range []Money{0, -1, maxAmount + 1} {
			_, err = s.Recharge(t.Context(), a, amount, "")
			require.Error(t, err)
			_, err = s.Refund(t.Context(), a, amount, "")
			require.Error(t, err)
		}
		_, err = s.Recharge(t.Context(), "nobody", Unit, "")
		require.ErrorIs(t, err, ErrNoAccount)
		list, total, err := s.Transactions(t.Context(), a, 1, 1)
		require.NoError(t, err)
		assert.Equal(t, 2, total)
		require.Len(t, list, 1)
		data, err := json.Marshal(list[0])
		require.NoError(t, err)
		assert.JSONEq(t, fmt.Sprintf(`{"id":%q,"user_id":%q,"task_id":null,"type":"refund","amount":"-150.0000","balance_before":"100.0000","balance_after":"-50.0000",
			"description":"paid back","created_at":%q}`, list[0].ID, a, list[0].CreatedAt.Format("2006-01-02T15:04:05.000Z07:00")), string(data))
	})
}

func TestPricesInTime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := New(d, func() time.Time { return now })
		p, err := s.Prices(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []Money{6000, 2000, 1000, 1000}, []Money{p.Standard, p.Lite, p.Diarize, p.AudioEvents})
		p.Standard = 9000
		_, err = s.SetPrices(t.Context(), p, now.Add(time.Hour))
		require.NoError(t, err)
		old, err := s.Prices(t.Context())
		require.NoError(t, err)
		assert.Equal(t, Money(6000), old.Standard)
		later, err := s.PricesAt(t.Context(), now.Add(time.Hour))
		require.NoError(t, err)
		assert.Equal(t, Money(9000), later.Standard)
		p.Standard = -1
		_, err = s.SetPrices(t.Context(), p, time.Time{})
		require.ErrorIs(t, err, ErrPrices)
		p.Standard, p.BatchDiscount = 1, 10001
		_, err = s.SetPrices(t.Context(), p, time.Time{})
		require.ErrorIs(t, err, ErrPrices)
	})
}

func TestPacksPayFirst(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := New(d, func() time.Time { return now })
		a := addAccount(t, s, "a")
		_, err := s.Recharge(t.Context(), a, 10*Unit, "")
		require.NoError(t, err)
		late, err := s.AddPack(t.Context(), a, Pack{Value: 3 * Unit, ExpiresAt: now.Add(48 * time.Hour), Concurrency: 7})
		require.NoError(t, err)
		soon, err := s.AddPack(t.Context(), a, Pack{Value: 2 * Unit, ExpiresAt: now.Add(24 * time.Hour)})
		require.NoError(t, err)
		_, err = s.AddPack(t.Context(), a, Pack{Value: 1, ExpiresAt: now})
		require.Error(t, err, "expired before it began")

		v, err := s.View(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, 15*Unit, v.AvailableBalance)
		assert.Equal(t, 7, v.ConcurrencyLimit, "the pack's bonus")
		require.NoError(t, hold(s, a, "t1", 15*Unit, false), "packs count for the gate")
		require.ErrorIs(t, hold(s, a, "t2", 1, false), ErrInsufficientBalance)
		require.ErrorIs(t, hold(s, a, "t3", 1, true), ErrInsufficientBalance)

		r, err := settle(s, a, "t1", quoteOf(4*Unit), false)
		require.NoError(t, err)
		assert.Equal(t, 4*Unit, r.FromPacks)
		again, err := settle(s, a, "t1", quoteOf(9*Unit), false)
		require.NoError(t, err)
		assert.Equal(t, r, again, "a second settlement returns the first")
		require.ErrorIs(t, hold(s, a, "t1", 1, false), ErrSettled)
		packs, err := s.Packs(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, []string{soon.ID, late.ID}, []string{packs[0].ID, packs[1].ID})
		assert.Equal(t, []Money{0, Unit}, []Money{packs[0].Remaining, packs[1].Remaining}, "the one that expires first pays first")
		list, _, err := s.Transactions(t.Context(), a, 1, 1)
		require.NoError(t, err)
		assert.Equal(t, Money(0), list[0].Amount)
		assert.Contains(t, list[0].Description, "4.0000 covered by resource packs")

		require.NoError(t, hold(s, a, "batch", 10*Unit, true))
		require.ErrorIs(t, hold(s, a, "batch2", 1, true), ErrInsufficientBalance, "packs are not for batch tasks")
		r, err = settle(s, a, "batch", quoteOf(2*Unit), true)
		require.NoError(t, err)
		assert.Zero(t, r.FromPacks)
		assert.Equal(t, 8*Unit, r.BalanceAfter)

		now = now.Add(72 * time.Hour)
		v, err = s.View(t.Context(), a)
		require.NoError(t, err)
		assert.Zero(t, v.ResourcePackEquivalent, "expired")
		assert.Equal(t, 2, v.ConcurrencyLimit)
		bill, err := s.Bill(t.Context(), a, "batch")
		require.NoError(t, err)
		assert.Equal(t, 8*Unit, bill.Balance)
		_, err = s.Bill(t.Context(), a, "never")
		require.ErrorIs(t, err, ErrNotSettled)
	})
}

func TestLimits(t *testing.T) {
	s := New(dbtest.SQLite(t, db.Options{}), nil)
	a := addAccount(t, s, "a")
	for _, want := range []Limits{{1, 2, 2, 4}, {2, 5, 5, 10}, {3, 10, 10, 20}, {4, 20, 20, 40}, {5, 50, 50, 100}} {
		require.NoError(t, s.SetTier(t.Context(), a, want.Tier))
		got, err := s.Limits(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	require.Error(t, s.SetTier(t.Context(), a, 0))
	require.Error(t, s.SetTier(t.Context(), a, 6))
	require.ErrorIs(t, s.SetTier(t.Context(), "nobody", 1), ErrNoAccount)
	one, rate, burst := 1, 0.5, 3
	require.NoError(t, s.SetLimits(t.Context(), a, Overrides{Concurrency: &one, TPS: &rate, Burst: &burst}))
	got, err := s.Limits(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, Limits{5, 1, 0.5, 3}, got)
	bad, none := math.NaN(), 0
	require.Error(t, s.SetLimits(t.Context(), a, Overrides{TPS: &bad}))
	require.Error(t, s.SetLimits(t.Context(), a, Overrides{Burst: &none}))
	_, err = s.Recharge(t.Context(), a, Unit, "")
	require.NoError(t, err)
	require.NoError(t, hold(s, a, "t1", 1, false))
	require.ErrorIs(t, hold(s, a, "t2", 1, false), ErrConcurrencyLimit)
	require.NoError(t, hold(s, a, "t3", 1, true), "batch tasks are exempt")
}

// TestT13RaceToTheLastCoin lets 100 submissions race for the balance of 10.
func TestT13RaceToTheLastCoin(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := New(d, nil)
		a := addAccount(t, s, "a")
		many := 1000
		require.NoError(t, s.SetLimits(t.Context(), a, Overrides{Concurrency: &many}))
		q, err := startPrices.Quote(Usage{Mode: spec.TierStandard, Seconds: 60, Diarize: true, Events: true})
		require.NoError(t, err)
		_, err = s.Recharge(t.Context(), a, 10*q.Total+q.Total-1, "ten and a bit")
		require.NoError(t, err)
		var wait sync.WaitGroup
		var mu sync.Mutex
		accepted, refused := 0, 0
		for i := range 100 {
			wait.Go(func() {
				err := hold(s, a, strconv.Itoa(i), q.Total, i%3 == 0)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted++
				case errors.Is(err, ErrInsufficientBalance):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wait.Wait()
		v, err := s.View(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, 10, accepted)
		assert.Equal(t, 90, refused)
		assert.GreaterOrEqual(t, v.AvailableBalance, Money(0))
		t.Logf("T13: %d of 100 accepted, %d refused, available %s", accepted, refused, v.AvailableBalance)
	})
}

// TestT16SharedBucket checks the bucket in the database: burst + rate × time pass, and T26, a clock that jumps.
func TestT16SharedBucket(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := New(d, func() time.Time { return now })
		l := Limits{TPS: 5, Burst: 10}
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

// ledgerModel is what T22 believes of one account.
type ledgerModel struct {
	balance     Money
	holds       map[string]heldTask
	settled     map[string]Money
	packs       []Pack
	total       int // ledger entries
	everCreated []string
}

type heldTask struct {
	amount Money
	batch  bool
}

// TestT22MoneyHistories runs random histories of all that moves money against a model, with transactions that fail half-way.
func TestT22MoneyHistories(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ran, steps, refused, broken := 0, 0, 0, 0
		ctx := context.Background()
		crash := errors.New("crash before the commit")
		rapid.Check(t, func(t *rapid.T) {
			ran++
			now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
			s := New(d, func() time.Time { return now })
			a := addAccount(t, s, "t22")
			limit := rapid.IntRange(1, 6).Draw(t, "concurrency")
			require.NoError(t, s.SetLimits(ctx, a, Overrides{Concurrency: &limit}))
			m := ledgerModel{holds: map[string]heldTask{}, settled: map[string]Money{}}
			active := func() (sum Money) {
				for _, p := range m.packs {
					if p.ExpiresAt.After(now) {
						sum += p.Remaining
					}
				}
				return sum
			}
			held := func(batch bool) (sum Money, n int) {
				for _, h := range m.holds {
					if h.batch == batch {
						sum += h.amount
						n++
					}
				}
				return sum, n
			}
			// write runs a step's transaction, sometimes first one that dies before its commit.
			write := func(t *rapid.T, fn func(tx *sql.Tx) error) error {
				if rapid.IntRange(0, 4).Draw(t, "crash") == 0 {
					broken++
					err := d.Write(ctx, func(tx *sql.Tx) error { return errors.Join(fn(tx), crash) })
					require.ErrorIs(t, err, crash)
				}
				return d.Write(ctx, fn)
			}
			amount := rapid.Custom(func(t *rapid.T) Money { return Money(rapid.Int64Range(1, 50_000).Draw(t, "amount")) })
			anyTask := func(t *rapid.T) string {
				if len(m.everCreated) == 0 {
					t.Skip("no task yet")
				}
				return rapid.SampledFrom(m.everCreated).Draw(t, "task")
			}
			t.Repeat(map[string]func(*rapid.T){
				"recharge": func(t *rapid.T) {
					x := amount.Draw(t, "x")
					_, err := s.Recharge(ctx, a, x, "")
					require.NoError(t, err)
					m.balance += x
					m.total++
				},
				"refund": func(t *rapid.T) {
					x := amount.Draw(t, "x")
					_, err := s.Refund(ctx, a, x, "")
					require.NoError(t, err)
					m.balance -= x
					m.total++
				},
				"pack": func(t *rapid.T) {
					p, err := s.AddPack(ctx, a, Pack{Value: amount.Draw(t, "value"), ExpiresAt: now.Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "hours")) * time.Hour)})
					require.NoError(t, err)
					m.packs = append(m.packs, p)
					slices.SortFunc(m.packs, func(x, y Pack) int {
						if c := x.ExpiresAt.Compare(y.ExpiresAt); c != 0 {
							return c
						}
						if x.ID < y.ID {
							return -1
						}
						return 1
					})
				},
				"time": func(t *rapid.T) {
					now = now.Add(time.Duration(rapid.IntRange(-30, 120).Draw(t, "minutes")) * time.Minute) // clocks go back too
				},
				"prices": func(t *rapid.T) {
					_, err := s.SetPrices(ctx, Prices{Standard: amount.Draw(t, "standard"), BatchDiscount: 5000}, now)
					require.NoError(t, err)
				},
				"hold": func(t *rapid.T) {
					task, x, batch := uuid.NewString(), amount.Draw(t, "x"), rapid.Bool().Draw(t, "batch")
					err := write(t, func(tx *sql.Tx) error { return s.Hold(ctx, tx, a, task, x, batch) })
					tasks, n := held(false)
					batches, _ := held(true)
					available := m.balance + active() - tasks - batches
					if batch {
						available = m.balance - batches - max(0, tasks-active())
					}
					switch {
					case available < x:
						refused++
						require.ErrorIs(t, err, ErrInsufficientBalance)
					case !batch && n >= limit:
						refused++
						require.ErrorIs(t, err, ErrConcurrencyLimit)
					default:
						require.NoError(t, err)
						m.holds[task] = heldTask{x, batch}
						m.everCreated = append(m.everCreated, task)
					}
				},
				"raise": func(t *rapid.T) {
					task, x := anyTask(t), amount.Draw(t, "x")
					require.NoError(t, write(t, func(tx *sql.Tx) error { return s.Raise(ctx, tx, task, x) }))
					if h, ok := m.holds[task]; ok {
						h.amount = max(h.amount, x)
						m.holds[task] = h
					}
				},
				"release": func(t *rapid.T) {
					task := anyTask(t)
					require.NoError(t, write(t, func(tx *sql.Tx) error { return s.Release(ctx, tx, task) }))
					delete(m.holds, task)
				},
				"settle": func(t *rapid.T) {
					task := anyTask(t)
					h, open := m.holds[task]
					before, was := m.settled[task]
					if !open && !was {
						t.Skip("released: the tasks' fencing keeps it from being settled")
					}
					x := amount.Draw(t, "x")
					err := write(t, func(tx *sql.Tx) error {
						_, err := s.Settle(ctx, tx, a, task, quoteOf(x), h.batch)
						return err
					})
					require.NoError(t, err)
					r, err := s.ReceiptOf(ctx, task)
					require.NoError(t, err)
					if was {
						require.Equal(t, before, r.Quote.Total, "the first settlement stands")
						return
					}
					rest := x
					for i := range m.packs {
						if p := &m.packs[i]; !h.batch && p.ExpiresAt.After(now) {
							draw := min(rest, p.Remaining)
							p.Remaining -= draw
							rest -= draw
						}
					}
					require.Equal(t, x-rest, r.FromPacks)
					m.balance -= rest
					m.total++
					m.settled[task] = x
					delete(m.holds, task)
				},
				"": func(t *rapid.T) {
					steps++
					v, err := s.View(ctx, a)
					require.NoError(t, err)
					tasks, n := held(false)
					batches, nb := held(true)
					require.Equal(t, m.balance, v.Balance)
					require.Equal(t, tasks+batches, v.HeldAmount, "held = Σ open holds")
					require.GreaterOrEqual(t, v.HeldAmount, Money(0))
					require.Equal(t, active(), v.ResourcePackEquivalent)
					require.Equal(t, n, v.ActiveTasks)
					require.Equal(t, nb, v.WaitingBatchTasks)
					require.Equal(t, v.Balance+v.ResourcePackEquivalent-v.HeldAmount, v.AvailableBalance)
					var sum sql.NullInt64
					var entries, charged, distinct int
					require.NoError(t, d.Read().QueryRow("SELECT CAST(SUM(amount) AS bigint), COUNT(*), COUNT(task_id), COUNT(DISTINCT task_id) FROM ledger WHERE account_id = $1", a).Scan(&sum, &entries, &charged, &distinct))
					require.Equal(t, int64(m.balance), sum.Int64, "balance = Σ ledger")
					require.Equal(t, m.total, entries)
					require.Equal(t, charged, distinct, "each task charged at most once")
					require.Equal(t, len(m.settled), charged)
				},
			})
		})
		t.Logf("T22: %d histories, %d steps, %d refusals, %d transactions broken off: all invariants held", ran, steps, refused, broken)
	})
}
