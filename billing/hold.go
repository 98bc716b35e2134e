package billing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/db"
)

// Hold reserves amount of the account's money for a new task, in the transaction that creates it. A non-batch task needs
// a free place (else ErrConcurrencyLimit) and an available balance, packs included, of at least amount. A batch task needs
// no place but amount from the balance alone, beside what the other holds need of it: packs do not pay for batch tasks.
// Too little money is ErrInsufficientBalance, for a batch task ErrBatchBalance. A task has one hold: a second one is an error.
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
	available, refusal := st.balance+st.packs-st.heldTasks-st.heldBatch, ErrInsufficientBalance
	if batch {
		available, refusal = st.balance-st.heldBatch-max(0, st.heldTasks-st.packs), ErrBatchBalance
	}
	if available < amount {
		return fmt.Errorf("billing: %w: the task requires %s, %s available", refusal, amount.Number(), available.Number())
	}
	if limit := st.limits().Concurrency; !batch && st.active >= limit {
		return fmt.Errorf("billing: %w: %d of %d tasks are being processed", ErrConcurrencyLimit, st.active, limit)
	}
	var settled int
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM settlements WHERE task_id = $1", task).Scan(&settled); err != nil {
		return s.wrap("hold", err)
	}
	if settled > 0 {
		return fmt.Errorf("billing: hold: %w: %s", ErrSettled, task)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO holds (task_id, account_id, amount, batch, created_at) VALUES ($1, $2, $3, $4, $5)",
		task, account, amount, batch, db.Micros(s.now()))
	return s.wrap("hold", err)
}

// Raise lifts a task's open hold to amount; a higher hold stays. The available balance may fall below zero by it. A task
// without an open hold is left alone.
func (s *Store) Raise(ctx context.Context, tx *sql.Tx, task string, amount Money) error {
	if err := s.lockOf(ctx, tx, task); err != nil {
		return s.wrap("raise hold", err)
	}
	_, err := tx.ExecContext(ctx, "UPDATE holds SET amount = $2 WHERE task_id = $1 AND amount < $2", task, amount)
	return s.wrap("raise hold", err)
}

// Release ends a task's hold without a charge. A task without an open hold is left alone.
func (s *Store) Release(ctx context.Context, tx *sql.Tx, task string) error {
	if err := s.lockOf(ctx, tx, task); err != nil {
		return s.wrap("release hold", err)
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM holds WHERE task_id = $1", task)
	return s.wrap("release hold", err)
}

// lockOf takes the row of the account that a task's hold belongs to, if it has one.
func (s *Store) lockOf(ctx context.Context, tx *sql.Tx, task string) error {
	var account string
	err := tx.QueryRowContext(ctx, "SELECT account_id FROM holds WHERE task_id = $1", task).Scan(&account)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.lock(ctx, tx, account)
	return err
}

// Held returns the amount of a task's open hold; ok is false when it has none.
func (s *Store) Held(ctx context.Context, task string) (amount Money, ok bool, err error) {
	err = s.db.Read().QueryRowContext(ctx, "SELECT amount FROM holds WHERE task_id = $1", task).Scan(&amount)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return amount, err == nil, s.wrap("hold", err)
}
