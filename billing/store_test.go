package billing

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/spec"
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

func newStore(d *db.DB, clock func() time.Time) *Store { return New(d.Read(), d, clock) }

func addAccount(t require.TestingT, s *Store, name string) string {
	id := uuid.NewString()
	require.NoError(t, s.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, 0)", id, name+id)
		return err
	}))
	return id
}

// allow lets the account have n concurrent non-batch tasks.
func allow(t require.TestingT, s *Store, account string, n int) {
	require.NoError(t, s.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec("UPDATE accounts SET concurrency = $2 WHERE id = $1", account, n)
		return err
	}))
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
		s := newStore(d, nil)
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
		list, total, err := s.Transactions(t.Context(), a, Page{Number: 1, Size: 1})
		require.NoError(t, err)
		assert.Equal(t, 2, total)
		require.Len(t, list, 1)
		assert.Equal(t, refund, list[0])
		assert.Equal(t, Transaction{
			ID: refund.ID, AccountID: a, Type: "refund", Amount: -150 * Unit, BalanceBefore: 100 * Unit, BalanceAfter: -50 * Unit,
			Description: "paid back", CreatedAt: refund.CreatedAt,
		}, list[0])
	})
}

func TestPricesByValidity(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := newStore(d, func() time.Time { return now })
		p, err := s.Prices(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []Money{6000, 2000, 1000, 1000}, []Money{p.Standard, p.Optimized, p.Diarize, p.AudioEvents})
		p.Standard = 9000
		_, err = s.SetPrices(t.Context(), p, now.Add(time.Hour))
		require.NoError(t, err)
		old, err := s.Prices(t.Context())
		require.NoError(t, err)
		assert.Equal(t, Money(6000), old.Standard)
		later, err := newStore(d, func() time.Time { return now.Add(time.Hour) }).Prices(t.Context())
		require.NoError(t, err)
		assert.Equal(t, Money(9000), later.Standard)
		assert.Nil(t, later.Live)
		p.Live = new(Money)
		_, err = s.SetPrices(t.Context(), p, now.Add(2*time.Hour))
		require.NoError(t, err)
		later, err = newStore(d, func() time.Time { return now.Add(2 * time.Hour) }).Prices(t.Context())
		require.NoError(t, err)
		assert.Equal(t, new(Money), later.Live, "free")
		*p.Live = -1
		_, err = s.SetPrices(t.Context(), p, time.Time{})
		require.ErrorIs(t, err, errPrices)
		p.Live, p.Standard = nil, -1
		_, err = s.SetPrices(t.Context(), p, time.Time{})
		require.ErrorIs(t, err, errPrices)
		p.Standard, p.BatchDiscount = 1, 10001
		_, err = s.SetPrices(t.Context(), p, time.Time{})
		require.ErrorIs(t, err, errPrices)
	})
}

func TestPacksPayFirst(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := newStore(d, func() time.Time { return now })
		a := addAccount(t, s, "a")
		_, err := s.Recharge(t.Context(), a, 10*Unit, "")
		require.NoError(t, err)
		late, err := s.AddPack(t.Context(), a, Pack{Value: 3 * Unit, ExpiresAt: now.Add(48 * time.Hour), Concurrency: 7})
		require.NoError(t, err)
		soon, err := s.AddPack(t.Context(), a, Pack{Value: 2 * Unit, ExpiresAt: now.Add(24 * time.Hour)})
		require.NoError(t, err)
		_, err = s.AddPack(t.Context(), a, Pack{Value: 1, ExpiresAt: now})
		require.Error(t, err, "expired before it was created")

		v, err := s.View(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, 15*Unit, v.Available)
		assert.Equal(t, 7, v.Limits.Concurrency, "the pack's bonus")
		require.NoError(t, hold(s, a, "t1", 15*Unit, false), "packs count for the limit")
		require.ErrorIs(t, hold(s, a, "t2", 1, false), ErrInsufficientBalance)
		require.ErrorIs(t, hold(s, a, "t3", 1, true), ErrInsufficientBalance)

		r, err := settle(s, a, "t1", quoteOf(4*Unit), false)
		require.NoError(t, err)
		assert.Equal(t, 4*Unit, r.FromPacks)
		again, err := settle(s, a, "t1", quoteOf(9*Unit), false)
		require.NoError(t, err)
		assert.Equal(t, r, again, "a second settlement returns the first")
		require.ErrorIs(t, hold(s, a, "t1", 1, false), errSettled)
		packs, err := s.Packs(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, []string{soon.ID, late.ID}, []string{packs[0].ID, packs[1].ID})
		assert.Equal(t, []Money{0, Unit}, []Money{packs[0].Remaining, packs[1].Remaining}, "the pack that expires first pays first")
		list, _, err := s.Transactions(t.Context(), a, Page{Number: 1, Size: 1})
		require.NoError(t, err)
		assert.Equal(t, Money(0), list[0].Amount)
		assert.Contains(t, list[0].Description, "4.0000 covered by resource packs")

		require.NoError(t, hold(s, a, "batch", 10*Unit, true))
		require.ErrorIs(t, hold(s, a, "batch2", 1, true), ErrInsufficientBalance, "packs do not pay for batch tasks")
		r, err = settle(s, a, "batch", quoteOf(2*Unit), true)
		require.NoError(t, err)
		assert.Zero(t, r.FromPacks)
		assert.Equal(t, 8*Unit, r.BalanceAfter)

		now = now.Add(72 * time.Hour)
		v, err = s.View(t.Context(), a)
		require.NoError(t, err)
		assert.Zero(t, v.Packs, "expired")
		assert.Equal(t, 2, v.Limits.Concurrency)
		bill, err := s.Bill(t.Context(), a, "batch")
		require.NoError(t, err)
		assert.Equal(t, 8*Unit, bill.Balance)
		_, err = s.Bill(t.Context(), a, "never")
		require.ErrorIs(t, err, sql.ErrNoRows)
	})
}

func TestConcurrencyGate(t *testing.T) {
	s := newStore(dbtest.SQLite(t, db.Options{}), nil)
	a := addAccount(t, s, "a")
	allow(t, s, a, 1)
	_, err := s.Recharge(t.Context(), a, Unit, "")
	require.NoError(t, err)
	require.NoError(t, hold(s, a, "t1", 1, false))
	require.ErrorIs(t, hold(s, a, "t2", 1, false), ErrConcurrencyLimit)
	require.NoError(t, hold(s, a, "t3", 1, true), "batch tasks are exempt")
}

// TestChargesCannotOverdraw lets 100 submissions race for the balance of 10.
// It covers T13 of test/README.md.
func TestChargesCannotOverdraw(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStore(d, nil)
		a := addAccount(t, s, "a")
		allow(t, s, a, 1000)
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
		assert.GreaterOrEqual(t, v.Available, Money(0))
		t.Logf("T13: %d of 100 accepted, %d refused, available %s", accepted, refused, v.Available)
	})
}

// ledgerModel is T22's model of one account.
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

// TestMoneyAlwaysAddsUp runs random histories of all money operations against a
// model, with transactions that fail half-way. It covers T22 of test/README.md.
func TestMoneyAlwaysAddsUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ran, steps, refused, broken := 0, 0, 0, 0
		ctx := context.Background()
		crash := errors.New("crash before the commit")
		rapid.Check(t, func(t *rapid.T) {
			ran++
			now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
			s := newStore(d, func() time.Time { return now })
			a := addAccount(t, s, "t22")
			limit := rapid.IntRange(1, 6).Draw(t, "concurrency")
			allow(t, s, a, limit)
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
			available := func(batch bool) Money {
				tasks, _ := held(false)
				batches, _ := held(true)
				if batch {
					return m.balance - batches - max(0, tasks-active())
				}
				return m.balance + active() - tasks - batches
			}
			// An account without refunds and with packs that do not expire
			// never owes anything.
			prepaid := rapid.Bool().Draw(t, "prepaid")
			// write runs a step's transaction, sometimes after one that fails
			// before its commit.
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
					if prepaid {
						t.Skip("nothing is taken")
					}
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
					if prepaid {
						t.Skip("packs do not expire")
					}
					now = now.Add(time.Duration(rapid.IntRange(-30, 120).Draw(t, "minutes")) * time.Minute) // clocks also go back
				},
				"prices": func(t *rapid.T) {
					_, err := s.SetPrices(ctx, Prices{Standard: amount.Draw(t, "standard"), BatchDiscount: 5000}, now)
					require.NoError(t, err)
				},
				"hold": func(t *rapid.T) {
					task, x, batch := uuid.NewString(), amount.Draw(t, "x"), rapid.Bool().Draw(t, "batch")
					err := write(t, func(tx *sql.Tx) error { return s.Hold(ctx, tx, a, task, x, batch) })
					_, n := held(false)
					switch {
					case available(batch) < x:
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
					h, open := m.holds[task]
					most := h.amount + available(h.batch)
					err := write(t, func(tx *sql.Tx) error { return s.Raise(ctx, tx, task, x) })
					if open && x > h.amount && x > most {
						refused++
						require.ErrorIs(t, err, ErrInsufficientBalance)
						return
					}
					require.NoError(t, err)
					if open {
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
					x, spare := amount.Draw(t, "x"), available(h.batch)
					err := write(t, func(tx *sql.Tx) error {
						_, err := s.Settle(ctx, tx, a, task, quoteOf(x), h.batch)
						return err
					})
					if !was && x > h.amount && x > h.amount+spare {
						refused++
						require.ErrorIs(t, err, ErrInsufficientBalance)
						return
					}
					require.NoError(t, err)
					r, err := receipt(ctx, s.pool, task)
					require.NoError(t, err)
					if was {
						require.Equal(t, before, r.Quote.Total, "the first settlement remains")
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
					require.Equal(t, tasks+batches, v.Held, "held = Σ open holds")
					require.GreaterOrEqual(t, v.Held, Money(0))
					require.Equal(t, active(), v.Packs)
					require.Equal(t, n, v.ActiveTasks)
					require.Equal(t, nb, v.WaitingBatchTasks)
					require.Equal(t, v.Balance+v.Packs-v.Held, v.Available)
					if prepaid {
						require.GreaterOrEqual(t, v.Balance, Money(0), "prepaid")
						require.GreaterOrEqual(t, v.Available, Money(0), "prepaid")
					}
					var sum sql.NullInt64
					var entries, charged, distinct int
					require.NoError(t, d.Read().QueryRow("SELECT CAST(SUM(amount) AS bigint), COUNT(*), COUNT(task_id), COUNT(DISTINCT task_id) FROM ledger WHERE account_id = $1", a).Scan(&sum, &entries, &charged, &distinct))
					require.Equal(t, int64(m.balance), sum.Int64, "balance = Σ ledger")
					require.Equal(t, m.total, entries)
					require.Equal(t, charged, distinct, "each task charged at most once")
					require.Equal(t, len(m.settled), charged)
					different, err := compare(ctx, d.Read(), a)
					require.NoError(t, err)
					require.Empty(t, different, "running sums")
				},
			})
		})
		t.Logf("T22: %d histories, %d steps, %d refusals, %d transactions broken off: all invariants held", ran, steps, refused, broken)
	})
}

// TestCheckFindsAndRepairs corrupts sums and a ledger's balance directly in the
// database.
func TestCheckFindsAndRepairs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStore(d, nil)
		a, b := addAccount(t, s, "a"), addAccount(t, s, "b")
		a, b = min(a, b), max(a, b)
		for _, account := range []string{a, b} {
			_, err := s.Recharge(t.Context(), account, Unit, "")
			require.NoError(t, err)
			require.NoError(t, hold(s, account, "task of "+account, 100, account == b))
		}
		found, err := s.Check(t.Context(), true)
		require.NoError(t, err)
		require.Empty(t, found)
		require.NoError(t, d.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec("UPDATE account_sums SET held_batch = 7, entries = 3 WHERE account_id = $1", b)
			return errors.Join(err, func() error {
				_, err := tx.Exec("UPDATE accounts SET balance = 1 WHERE id = $1", a)
				return err
			}())
		}))
		want := []Difference{{a, "balance", 1, 10000}, {b, "held_batch", 7, 100}, {b, "entries", 3, 1}}
		found, err = s.Check(t.Context(), true)
		require.NoError(t, err)
		assert.Equal(t, want, found)
		assert.Equal(t, "account "+a+": balance is 1, the rows say 10000", found[0].String())
		found, err = s.Check(t.Context(), true)
		require.NoError(t, err)
		assert.Equal(t, want[:1], found, "sums are corrected, balances are not")
	})
}

// TestFirstPricesHaveAnInstallationDate checks that the date is not the start
// of 1970.
func TestFirstPricesHaveAnInstallationDate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p, err := newStore(d, nil).Prices(t.Context())
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), p.UpdatedAt, time.Hour)
	})
}

// TestSolvent checks that an account that cannot pay for the cheapest minute is
// refused early.
func TestSolvent(t *testing.T) {
	s := newStore(dbtest.SQLite(t, db.Options{}), nil)
	ctx := context.Background()
	account := addAccount(t, s, "poor")
	assert.ErrorIs(t, s.Solvent(ctx, account), ErrInsufficientBalance)
	prices, err := s.Prices(ctx)
	require.NoError(t, err)
	least, err := prices.Quote(Usage{Seconds: 60, Mode: spec.TierOptimized, Batch: true})
	require.NoError(t, err)
	_, err = s.Recharge(ctx, account, least.Total-1, "a little less than the cheapest minute")
	require.NoError(t, err)
	assert.ErrorIs(t, s.Solvent(ctx, account), ErrInsufficientBalance)
	_, err = s.Recharge(ctx, account, 1, "the rest")
	require.NoError(t, err)
	assert.NoError(t, s.Solvent(ctx, account))
	_, err = s.Refund(ctx, account, least.Total, "")
	require.NoError(t, err)
	prices.Optimized = 0
	_, err = s.SetPrices(ctx, prices, time.Time{})
	require.NoError(t, err)
	assert.NoError(t, s.Solvent(ctx, account), "the optimized tier is free")
	_, err = s.Refund(ctx, account, 1, "")
	require.NoError(t, err)
	assert.ErrorIs(t, s.Solvent(ctx, account), ErrInsufficientBalance, "a debt")
	assert.ErrorIs(t, s.Solvent(ctx, "nobody"), ErrNoAccount)
}
