package tasks

import (
	"context"
	"database/sql"
	"fmt"
)

// Delete removes a task with its audio, result, checkpoints and callback. If
// the task waits for a retry, the retry is canceled and the hold is released.
// Ledger entries stay. Errors wrap ErrNotFound, ErrForbidden or ErrProcessing.
func (s *Service) Delete(ctx context.Context, account, id string) error {
	var pending []string
	forgotten := s.erased.take()
	err := s.DB.Write(ctx, func(tx *sql.Tx) error {
		pending = nil
		r, err := s.lockNamed(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case r.AccountID != account:
			return fmt.Errorf("%w: %s", ErrForbidden, id)
		case r.Status == StatusProcessing:
			return fmt.Errorf("%w: %s", ErrProcessing, id)
		}
		if err := s.billing.Release(ctx, tx, id); err != nil {
			return err
		}
		if r.phase == "queued" { // for its retry
			if err := s.queue.Withdrawn(ctx, tx, r.ref()); err != nil {
				return err
			}
		}
		if err := forgetDeletions(ctx, tx, forgotten); err != nil {
			return err
		}
		pending, err = s.remove(ctx, tx, r)
		return err
	})
	if err != nil {
		s.erased.add(forgotten)
		return s.wrap("delete", err)
	}
	s.queue.Changed(ctx)
	s.Logger.InfoContext(ctx, "task deleted", "task", id, "account", account)
	if err := s.erase(context.WithoutCancel(ctx), pending); err != nil {
		s.Logger.WarnContext(ctx, "files of a deleted task stay until the clean-up", "task", id, "error", err)
	}
	return nil
}
