package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// eraseBatch is the number of files erased with one pair of transactions.
const eraseBatch = 200

// scheduleDeletion schedules a file (or, if the key ends in "/", all files
// under a prefix) for deletion.
func (s *core) scheduleDeletion(ctx context.Context, tx *sql.Tx, key string, due time.Time) error {
	return db.Do(ctx, tx, "INSERT INTO doomed_blobs (key, due_at) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET due_at = excluded.due_at", key, db.Micros(due))
}

// erase deletes at most eraseBatch pending files (or prefixes) and then forgets
// them. If it fails in between, a later call deletes them again. Files that are
// no longer pending are left alone.
func (s *core) erase(ctx context.Context, keys []string) error {
	var pending []string
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) (err error) { // no row may refer to a file that is about to be deleted
		var args db.Args
		list := args.AddTexts(keys)
		// Rows are locked in one order, so that transactions that erase the
		// same files do not deadlock.
		if _, err := tx.ExecContext(ctx, "UPDATE tasks SET audio_blob = NULL WHERE id IN (SELECT id FROM tasks WHERE audio_blob IN ("+list+") AND phase = 'final' ORDER BY id"+s.Config.DB.ForUpdate()+")", args...); err != nil {
			return err
		}
		// Read while the tasks' rows are locked, because a retry holds its
		// task's row while it removes files from the list.
		pending, err = db.Column[string](ctx, tx, "SELECT key FROM doomed_blobs WHERE key IN ("+list+") ORDER BY due_at, key", args...)
		return err
	})
	if err != nil || len(pending) == 0 {
		return err
	}
	gone, failed := s.eraseFiles(ctx, pending)
	if len(gone) == 0 {
		return failed
	}
	return errors.Join(failed, s.forgetKeys(ctx, "doomed_blobs", gone))
}

func (s *core) eraseFiles(ctx context.Context, keys []string) (gone []string, failed error) {
	var g errgroup.Group
	g.SetLimit(s.Config.EraseAtOnce)
	errs := make([]error, len(keys))
	for i, key := range keys {
		g.Go(func() error {
			if strings.HasSuffix(key, "/") {
				errs[i] = s.Config.Blobs.DeletePrefix(ctx, key)
			} else {
				errs[i] = s.Config.Blobs.Delete(ctx, key)
			}
			return nil
		})
	}
	_ = g.Wait() // each function reports its own error
	for i, key := range keys {
		if errs[i] == nil {
			gone = append(gone, key)
		}
	}
	return gone, errors.Join(errs...)
}

// forgetKeys deletes the rows of files from a table of files.
func (s *core) forgetKeys(ctx context.Context, table string, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	var args db.Args
	list := args.AddTexts(keys)
	_, err := s.Config.DB.Exec(ctx, "DELETE FROM "+table+" WHERE key IN ("+list+")", args...)
	return err
}

// sweepDone erases the checkpoints of a done task, and its audio unless the
// service keeps it. A done task is never claimed again, so this needs no
// transaction. The clean-up removes the files from the list of pending
// deletions.
func (s *core) sweepDone(ctx context.Context, task, audio string) {
	ctx = context.WithoutCancel(ctx)
	s.queue.Changed(ctx)
	keys := []string{CheckpointPrefix(task)}
	if audio != "" && s.Config.KeepAudio <= 0 {
		keys = append(keys, audio)
	}
	if _, err := s.eraseFiles(ctx, keys); err != nil {
		s.Config.Logger.WarnContext(ctx, "files of a done task stay until the clean-up", "task", task, "error", err)
	}
}

// sweepTask announces the end of a claim or a task and erases the files of an
// ended task. The clean-up erases any file that this fails to erase.
func (s *core) sweepTask(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	s.queue.Changed(ctx)
	var final int
	err := s.Config.DB.Read().QueryRowContext(ctx, "SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase = 'final'", id).Scan(&final)
	if err == nil && final > 0 {
		err = s.deleteDue(ctx)
	}
	if err != nil {
		s.Config.Logger.WarnContext(ctx, "files of a finished task stay until the clean-up", "task", id, "error", err)
	}
}

// deleteDue erases all files that are due, until an erasure fails.
func (s *core) deleteDue(ctx context.Context) error {
	for {
		keys, err := db.Column[string](ctx, s.Config.DB.Read(), fmt.Sprintf("SELECT key FROM doomed_blobs WHERE due_at <= $1 ORDER BY due_at, key LIMIT %d", eraseBatch), db.Micros(s.now()))
		if err != nil || len(keys) == 0 {
			return s.wrap("sweep", err)
		}
		if err := s.erase(ctx, keys); err != nil || len(keys) < eraseBatch {
			return s.wrap("sweep", err)
		}
	}
}

const (
	expireBatch = 100         // tasks that one transaction removes
	expireTime  = time.Minute // limit of one clean-up; the next one continues
)

// expire removes tasks that ended longer ago than their account, or else
// KeepTasks, keeps them, the oldest first, with their results, audio and
// callbacks. The ledger stays, including its record of how they were charged.
func (s *core) expire(ctx context.Context) error {
	type keeper struct {
		account string
		keep    int64 // microseconds
	}
	keepers, err := db.Select(ctx, s.Config.DB.Read(), func(row db.Row, k *keeper) error { return row.Scan(&k.account, &k.keep) },
		"SELECT id, keep_tasks FROM accounts WHERE keep_tasks IS NOT NULL")
	if err != nil {
		return s.wrap("remove old tasks", err)
	}
	begun, removed := time.Now(), 0
	defer func() {
		if removed > 0 {
			s.Config.Logger.InfoContext(ctx, "tasks removed that ended long ago", "tasks", removed)
		}
	}()
	if s.Config.KeepTasks > 0 {
		keepers = append(keepers, keeper{keep: s.Config.KeepTasks.Microseconds()})
	}
	for _, k := range keepers {
		of, args := "account_id NOT IN (SELECT id FROM accounts WHERE keep_tasks IS NOT NULL)", db.Args{db.Micros(s.now()) - k.keep}
		if k.account != "" {
			of = "account_id = " + args.Add(k.account)
		}
		for n := expireBatch; n == expireBatch && time.Since(begun) < expireTime; removed += n {
			if n, err = s.expireSome(ctx, "finished_at < $1 AND "+of, args); err != nil {
				return s.wrap("remove old tasks", err)
			}
		}
	}
	return nil
}

// expireSome removes at most expireBatch of the ended tasks that a condition
// selects, the oldest first, and returns their number.
func (s *core) expireSome(ctx context.Context, where string, args db.Args) (n int, err error) {
	err = s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		ids, err := db.Column[string](ctx, tx, fmt.Sprintf("SELECT id FROM tasks WHERE phase = 'final' AND %s ORDER BY finished_at LIMIT %d", where, expireBatch)+s.Config.DB.SkipLocked(), args...)
		if n = len(ids); err != nil {
			return err
		}
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
	return n, err
}

// remove removes a locked task and its callback; its files are deleted later.
func (s *core) remove(ctx context.Context, tx *sql.Tx, r row) (pending []string, err error) {
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
	for _, table := range []string{"annotations", "corrections", "live_segments"} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE task_id = $1", r.ID); err != nil {
			return nil, err
		}
	}
	return pending, db.Do(ctx, tx, "DELETE FROM tasks WHERE id = $1", r.ID)
}

// Files returns the keys of all files of a task. Errors wrap ErrNotFound or
// ErrForbidden.
func (s *Owners) Files(ctx context.Context, account, id string) (keys []string, err error) {
	_, audio, result, err := s.get(ctx, account, id)
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc([]string{audio, result}, func(key string) bool { return key == "" })
	return keys, s.Config.Blobs.List(ctx, CheckpointPrefix(id), func(o blob.Object) error {
		keys = append(keys, o.Key)
		return nil
	})
}
