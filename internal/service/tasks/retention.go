package tasks

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

const (
	expireBatch = 100         // tasks that one transaction removes
	expireTime  = time.Minute // limit of one clean-up; the next one continues
)

// expire removes tasks that ended longer than KeepTasks ago, the oldest first,
// with their results, audio and callbacks. The ledger stays, including its
// record of how they were charged.
func (s *Service) expire(ctx context.Context) error {
	if s.KeepTasks <= 0 {
		return nil
	}
	before, begun, removed := db.Micros(s.now().Add(-s.KeepTasks)), time.Now(), 0
	defer func() {
		if removed > 0 {
			s.Logger.InfoContext(ctx, "tasks removed that ended long ago", "tasks", removed)
		}
	}()
	for time.Since(begun) < expireTime {
		n := 0
		err := s.DB.Write(ctx, func(tx *sql.Tx) error {
			ids, err := db.Column[string](ctx, tx, fmt.Sprintf("SELECT id FROM tasks WHERE phase = 'final' AND finished_at < $1 ORDER BY finished_at LIMIT %d", expireBatch)+s.DB.SkipLocked(), before)
			if err != nil {
				return err
			}
			n = len(ids)
			for _, id := range ids {
				r, err := s.lockTask(ctx, tx, id)
				if err != nil {
					return err
				}
				if _, err := s.remove(ctx, tx, r); err != nil {
					return err
				}
			}
			return nil
		})
		removed += n
		if err != nil || n < expireBatch {
			return s.wrap("remove old tasks", err)
		}
	}
	return nil
}

// remove removes a task whose row is locked, with its callback, and schedules
// its files for deletion.
func (s *Service) remove(ctx context.Context, tx *sql.Tx, r row) (pending []string, err error) {
	if err := s.outbox.Drop(ctx, tx, r.ID); err != nil {
		return nil, err
	}
	if err := s.forgetAnswer(ctx, tx, r); err != nil {
		return nil, err
	}
	for _, key := range []string{r.audio, r.result, CheckpointPrefix(r.ID)} {
		if key == "" {
			continue
		}
		if err := s.scheduleDeletion(ctx, tx, key, s.now()); err != nil {
			return nil, err
		}
		pending = append(pending, key)
	}
	for _, table := range []string{"annotations", "live_segments"} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE task_id = $1", r.ID); err != nil {
			return nil, err
		}
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM tasks WHERE id = $1", r.ID)
	return pending, err
}
