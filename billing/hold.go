package billing

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Shortage is the error for a hold or charge that an account cannot pay. It
// wraps ErrInsufficientBalance, or ErrBatchBalance for a batch task.
type Shortage struct {
	Required  Money
	Available Money // for this task, including its own hold
	Batch     bool
}

// Error implements error.
func (e *Shortage) Error() string {
	return fmt.Sprintf("%v: the task requires %s, %s available", e.Unwrap(), e.Required.Number(), e.Available.Number())
}

// Unwrap returns ErrInsufficientBalance or ErrBatchBalance.
func (e *Shortage) Unwrap() error {
	if e.Batch {
		return ErrBatchBalance
	}
	return ErrInsufficientBalance
}

// available returns the amount that a further hold may reserve, which can be
// negative. A non-batch task may reserve everything that is not held, packs
// included. Packs do not pay for batch tasks, which may reserve only the part
// of the balance that the other holds leave.
func (st state) available(batch bool) Money {
	if batch {
		return st.balance - st.heldBatch - max(0, st.heldTasks-st.packs)
	}
	return st.balance + st.packs - st.heldTasks - st.heldBatch
}

// covers returns a *Shortage if the account cannot reserve amount for a task
// whose own hold is held. It is the one rule of who can pay.
func (st state) covers(held, amount Money, batch bool) error {
	if available := held + st.available(batch); available < amount {
		return fmt.Errorf("billing: %w", &Shortage{Required: amount, Available: available, Batch: batch})
	}
	return nil
}

// Solvent returns the *Shortage of Hold if the account cannot pay for any task:
// the shortest one at the lowest of the prices.
func (s *Store) Solvent(ctx context.Context, account string) error {
	st, err := s.read(ctx, s.pool, account)
	if err != nil {
		return s.wrap("account", err)
	}
	p, err := s.Prices(ctx)
	if err != nil {
		return err
	}
	p.Standard = min(p.Standard, p.Optimized, p.base(Usage{Live: true}))
	least, err := p.Quote(Usage{Seconds: 1, Mode: spec.TierStandard, Batch: true})
	if err != nil {
		return err
	}
	return st.covers(0, least.Total, false)
}

// Hold reserves amount of the account's money for a new task, in the
// transaction that creates it. A non-batch task needs a free slot (else
// ErrConcurrencyLimit) and an available balance, packs included, of at least
// amount. A batch task needs no slot, but the balance alone must cover amount
// after the other holds: packs do not pay for batch tasks. If the money is
// short, the error is a *Shortage. A second hold for the same task is an error.
func (s *Store) Hold(ctx context.Context, tx *sql.Tx, account, task string, amount Money, batch bool) error {
	if amount < 0 {
		return fmt.Errorf("billing: hold of %s", amount)
	}
	if _, err := s.lock(ctx, tx, account); err != nil {
		return s.wrap("hold", err)
	}
	st, err := s.read(ctx, tx, account)
	if err != nil {
		return s.wrap("hold", err)
	}
	if err := st.covers(0, amount, batch); err != nil {
		return err
	}
	if limit := st.limits().Concurrency; !batch && st.active >= limit {
		return fmt.Errorf("billing: %w: %d of %d tasks are being processed", ErrConcurrencyLimit, st.active, limit)
	}
	var settled int
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM settlements WHERE task_id = $1", task).Scan(&settled); err != nil {
		return s.wrap("hold", err)
	}
	if settled > 0 {
		return fmt.Errorf("billing: hold: %w: %s", errSettled, task)
	}
	return s.wrap("hold", db.Do(ctx, tx, "INSERT INTO holds (task_id, account_id, amount, batch, created_at) VALUES ($1, $2, $3, $4, $5)",
		task, account, amount, batch, db.Micros(s.clock())))
}

// Raise lifts a task's open hold to amount; a higher hold stays. The difference
// must be available, as for a new hold; otherwise the error is a *Shortage and
// the hold is unchanged. A task without an open hold is ignored.
func (s *Store) Raise(ctx context.Context, tx *sql.Tx, task string, amount Money) error {
	if err := s.lockOf(ctx, tx, task); err != nil {
		return s.wrap("raise hold", err)
	}
	held, st, err := s.heldBy(ctx, tx, task)
	if found, err := db.Found(err); !found || held.amount >= amount {
		return s.wrap("raise hold", err)
	}
	if err := st.covers(held.amount, amount, held.batch); err != nil {
		return err
	}
	return s.wrap("raise hold", db.Do(ctx, tx, "UPDATE holds SET amount = $2 WHERE task_id = $1", task, amount))
}

type openHold struct {
	account string
	amount  Money
	batch   bool
}

// heldBy returns a task's open hold and the state of its account. Without an
// open hold, the error is sql.ErrNoRows.
func (s *Store) heldBy(ctx context.Context, q Querier, task string) (h openHold, st state, err error) {
	err = q.QueryRowContext(ctx, "SELECT account_id, amount, batch FROM holds WHERE task_id = $1", task).Scan(&h.account, &h.amount, &h.batch)
	if err == nil {
		st, err = s.read(ctx, q, h.account)
	}
	return h, st, err
}

// HoldLimit returns the amount of a task's open hold and the maximum to which
// Raise could lift it now. Both are 0 without an open hold.
func (s *Store) HoldLimit(ctx context.Context, task string) (held, most Money, err error) {
	h, st, err := s.heldBy(ctx, s.pool, task)
	if found, err := db.Found(err); !found {
		return 0, 0, s.wrap("hold limit", err)
	}
	return h.amount, h.amount + max(0, st.available(h.batch)), nil
}

// Overdrawn reports whether the account's money no longer covers the holds of
// batch or non-batch tasks, for example after a refund or the expiry of a pack.
func (s *Store) Overdrawn(ctx context.Context, tx *sql.Tx, account string, batch bool) (bool, error) {
	st, err := s.read(ctx, tx, account)
	return err == nil && st.available(batch) < 0, s.wrap("overdrawn", err)
}

// LockOverdrawn is Overdrawn under the account's lock: no money moves until the
// transaction ends.
func (s *Store) LockOverdrawn(ctx context.Context, tx *sql.Tx, account string, batch bool) (bool, error) {
	if _, err := s.lock(ctx, tx, account); err != nil {
		return false, s.wrap("overdrawn", err)
	}
	return s.Overdrawn(ctx, tx, account, batch)
}

// Release ends a task's open hold, if it has one, without a charge.
func (s *Store) Release(ctx context.Context, tx *sql.Tx, task string) error {
	if err := s.lockOf(ctx, tx, task); err != nil {
		return s.wrap("release hold", err)
	}
	return s.wrap("release hold", db.Do(ctx, tx, "DELETE FROM holds WHERE task_id = $1", task))
}

// lockOf locks the row of the account that a task's hold belongs to, if any.
func (s *Store) lockOf(ctx context.Context, tx *sql.Tx, task string) error {
	var account string
	found, err := db.Found(tx.QueryRowContext(ctx, "SELECT account_id FROM holds WHERE task_id = $1", task).Scan(&account))
	if found {
		_, err = s.lock(ctx, tx, account)
	}
	return err
}
