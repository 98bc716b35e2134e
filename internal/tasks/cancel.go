package tasks

import (
	"context"
	"database/sql"
	"fmt"
)

// canceledMessage is the error_message of a canceled task.
const canceledMessage = "canceled by the operator of the service"

// Cancel ends a task that is not final, whether it waits or runs. The task
// becomes StatusFailed and final, its hold is released, nothing is charged, and
// its callback is sent as for any failed task. A worker that has the task drops
// it at its next heartbeat; what it writes until then is refused. Errors wrap
// ErrNotFound or ErrFinal.
//
// Cancel is for operators and checks no account.
func (s *Service) Cancel(ctx context.Context, id string) (Task, error) {
	var t Task
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.lockNamed(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case r.Final():
			return fmt.Errorf("%w: %s is %s", ErrFinal, id, r.Status)
		}
		if r.phase == "queued" {
			if err := s.queue.Withdrawn(ctx, tx, r.ref()); err != nil {
				return err
			}
		}
		if err := s.finalize(ctx, tx, r, StatusFailed, canceledMessage); err != nil {
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
