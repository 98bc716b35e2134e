package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/system/db"
)

// ErrNotRetryable is returned for a task that can't be run again: it is done,
// waits for a worker or has one, or the recording of the task or of a known
// speaker no longer exists.
var ErrNotRetryable = errors.New("task cannot be retried")

// Retry runs a task again. A task that waits for its retry is queued now, with
// its remaining attempts. A task that failed for good or was abandoned gets a
// new hold at the prices of its creation, and all its attempts; its old
// callback is withdrawn and its new end is announced, unless the old callback
// has already been deleted (see webhook.Outbox.Forget). A done task is not run
// again: it would be charged twice. Deleted uploads and deleted recordings of
// known speakers cannot be fetched again.
//
// Errors wrap ErrNotFound, ErrNotRetryable, billing.ErrInsufficientBalance or
// billing.ErrConcurrencyLimit. Retry is for operators and checks no account.
func (s *Operators) Retry(ctx context.Context, id string) (Task, error) {
	var t Task
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.lockNamed(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case r.phase == "delayed":
			err = s.queue.Requeue(ctx, tx, r.ref())
		case !r.Final():
			err = fmt.Errorf("%w: %s is %s", ErrNotRetryable, id, r.phase)
		case r.Status == StatusDone:
			err = fmt.Errorf("%w: %s is done and charged", ErrNotRetryable, id)
		default:
			err = s.reopen(ctx, tx, r)
		}
		if err != nil {
			return err
		}
		t, err = scanTask(tx.QueryRowContext(ctx, "SELECT "+taskColumns+" FROM tasks WHERE id = $1", id))
		return err
	})
	if err != nil {
		return Task{}, s.wrap("retry", err)
	}
	s.Config.Logger.InfoContext(ctx, "task is retried", "task", id, "account", t.AccountID)
	s.queue.Wake(ctx)
	return t, nil
}

// reopen returns a task that ended without a result, and whose row is locked,
// to the queue.
func (s *core) reopen(ctx context.Context, tx *sql.Tx, r row) error {
	if r.AudioSourceType != SourceURL && r.audio == "" {
		return fmt.Errorf("%w: the recording of %s no longer exists: submit it again", ErrNotRetryable, r.ID)
	}
	if len(r.Extras.Voices) > 0 { // their recordings are deleted when the task ends, even if its audio is kept
		return fmt.Errorf("%w: the recordings of the known speakers of %s no longer exist: submit it again", ErrNotRetryable, r.ID)
	}
	if err := s.holdAgain(ctx, tx, r); err != nil {
		return err
	}
	// Files scheduled for deletion by the previous end are needed again; see
	// erase.
	for _, key := range []string{r.audio, CheckpointPrefix(r.ID)} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM doomed_blobs WHERE key = $1", key); err != nil {
			return err
		}
	}
	callback, err := s.outbox.Withdraw(ctx, tx, r.ID)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE tasks SET phase = 'queued', status = 'processing', run_at = 0, queued_at = $2, updated_at = $2, finished_at = NULL,
		error_message = NULL, failures = 0, crashes = 0, interruptions = 0, callback_url = COALESCE($3, callback_url), callback_secret = COALESCE($4, callback_secret)
		WHERE id = $1`, r.ID, db.Micros(s.now()), db.Optional(callback.URL), db.Optional(callback.Secret)); err != nil {
		return err
	}
	return s.queue.Added(ctx, tx, r.ref())
}

// holdAgain holds the price of a task that had a hold before.
func (s *core) holdAgain(ctx context.Context, tx *sql.Tx, r row) error {
	sets, err := s.queue.Available(ctx, tx)
	if err != nil {
		return err
	}
	prices, err := s.billing.PricesByID(ctx, tx, r.price)
	if err != nil {
		return err
	}
	price, err := s.firstPrice(r.Options, 0, r.BatchMode, prices, stillNaming(r.Extras.Model, sets))
	if err != nil {
		return err
	}
	return s.billing.Hold(ctx, tx, r.AccountID, r.ID, price, r.BatchMode)
}
