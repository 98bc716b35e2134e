package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Error messages of canceled tasks.
const (
	canceledMessage  = "canceled by the operator of the service"
	withdrawnMessage = "canceled by its owner"
)

// ErrTold is returned for a task that its owner can no longer cancel: some of
// its sentences have been reported, and text is only delivered if it is
// charged.
var ErrTold = errors.New("sentences have been reported")

// Cancel ends a task that is not final, whether it waits or runs. The task
// becomes StatusFailed and final, its hold is released, nothing is charged, and
// its callback is sent as for any failed task. A worker that runs the task
// drops it at its next heartbeat; until then its writes are refused. Errors
// wrap ErrNotFound or ErrFinal.
//
// Cancel is for operators and checks no account.
func (s *Service) Cancel(ctx context.Context, id string) (Task, error) {
	return s.cancel(ctx, id, canceledMessage, func(*sql.Tx, row) error { return nil })
}

// Withdraw cancels a task for its owner, as long as no sentence has been
// reported. Errors wrap ErrNotFound, ErrFinal, ErrForbidden or ErrTold.
func (s *Service) Withdraw(ctx context.Context, account, id string) (Task, error) {
	return s.cancel(ctx, id, withdrawnMessage, func(tx *sql.Tx, r row) error {
		if r.AccountID != account {
			return fmt.Errorf("%w: %s", ErrForbidden, id)
		}
		var told int
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM live_segments WHERE task_id = $1", id).Scan(&told)
		if err == nil && told > 0 {
			err = fmt.Errorf("%w: %s", ErrTold, id)
		}
		return err
	})
}

// cancel ends a task that is not final, unless refuse returns an error.
func (s *Service) cancel(ctx context.Context, id, message string, refuse func(*sql.Tx, row) error) (Task, error) {
	var t Task
	err := s.DB.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.lockNamed(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := refuse(tx, r); err != nil {
			return err
		}
		if r.Final() {
			return fmt.Errorf("%w: %s is %s", ErrFinal, id, r.Status)
		}
		if r.phase == "queued" {
			if err := s.queue.Withdrawn(ctx, tx, r.ref()); err != nil {
				return err
			}
		}
		if err := s.finalize(ctx, tx, r, StatusFailed, message); err != nil {
			return err
		}
		t, err = scanTask(tx.QueryRowContext(ctx, "SELECT "+taskColumns+" FROM tasks WHERE id = $1", id))
		return err
	})
	if err != nil {
		return Task{}, s.wrap("cancel", err)
	}
	s.sweepTask(ctx, id)
	return t, nil
}
