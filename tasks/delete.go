package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/db"
)

// Delete removes a task with its audio, its result, its checkpoints and its callback; a retry that it waits for is
// cancelled and its hold released. Ledger entries stay. Errors wrap ErrNotFound, ErrForbidden or ErrProcessing.
func (s *Service) Delete(ctx context.Context, account, id string) error {
	var doomed []string
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		doomed = nil
		r, err := s.lockTask(ctx, tx, id)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("%w: %.40q", ErrNotFound, id)
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
		if err := s.outbox.Drop(ctx, tx, id); err != nil {
			return err
		}
		for _, key := range []string{r.audio, r.result, waveformKey(r.result), CheckpointPrefix(id)} {
			if key == "" {
				continue
			}
			if err := s.doom(ctx, tx, key, s.now()); err != nil {
				return err
			}
			doomed = append(doomed, key)
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM tasks WHERE id = $1", id)
		return err
	})
	if err != nil {
		return s.wrap("delete", err)
	}
	s.log.InfoContext(ctx, "task deleted", "task", id, "account", account)
	for _, key := range doomed {
		if err := s.erase(context.WithoutCancel(ctx), key); err != nil {
			s.log.WarnContext(ctx, "file stays until the clean-up", "key", key, "error", err)
		}
	}
	return nil
}

// erase deletes a doomed file (or prefix) and then forgets it; in between it may be done again.
func (s *Service) erase(ctx context.Context, key string) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error { // no row may point at a file that is about to go
		_, err := tx.ExecContext(ctx, "UPDATE tasks SET audio_blob = NULL WHERE audio_blob = $1 AND phase = 'final'", key)
		return err
	})
	if err != nil {
		return err
	}
	if strings.HasSuffix(key, "/") {
		err = s.blobs.DeletePrefix(ctx, key)
	} else {
		err = s.blobs.Delete(ctx, key)
	}
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM doomed_blobs WHERE key = $1", key)
		return err
	})
}

// sweepTask erases what a task that has just ended left behind; what can't be erased now is the clean-up's.
func (s *Service) sweepTask(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	var final int
	err := s.db.Read().QueryRowContext(ctx, "SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase = 'final'", id).Scan(&final)
	if err == nil && final > 0 {
		err = s.sweepDoomed(ctx)
	}
	if err != nil {
		s.log.WarnContext(ctx, "files of a finished task stay until the clean-up", "task", id, "error", err)
	}
}

// sweepDoomed erases all files that are due.
func (s *Service) sweepDoomed(ctx context.Context) error {
	keys, err := db.Column[string](s.db.Read().QueryContext(ctx, "SELECT key FROM doomed_blobs WHERE due_at <= $1 ORDER BY due_at LIMIT 1000", db.Micros(s.now())))
	if err != nil {
		return s.wrap("sweep", err)
	}
	var failed error
	for _, key := range keys {
		if err := s.erase(ctx, key); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
