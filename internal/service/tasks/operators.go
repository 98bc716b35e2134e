package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/db"
)

// Lane is the state of one lane of the queue.
type Lane struct {
	Waiting int           // tasks that could run now
	Delayed int           // tasks that wait for a retry
	Running int           // tasks at a worker
	Oldest  time.Duration // how long the first waiting task has waited
	Sound   float64       // seconds of sound that wait; a task of unknown length counts as Config.UnknownLength
}

// Stats is the state of the service, for metrics.
type Stats struct {
	Tasks, Batch                       Lane
	Fetch                              Lane // downloads of audio
	CallbacksWaiting, CallbacksRunning int
	CallbacksGivenUp                   int
	OldestCallback                     time.Duration // age of the oldest pending callback; 0 without one
	FilesToDelete                      int           // files due for deletion
	TasksByFinalState                  map[Status]int
	ChoresDone                         map[string]time.Time // time of each chore's last success
	PausedLanes                        map[string]bool      // whether an operator paused the lane
}

// Stats returns the state of the service. It reads running sums and indexes of
// unfinished tasks: its cost does not grow with finished tasks.
func (s *Operators) Stats(ctx context.Context) (Stats, error) {
	var st Stats
	now := db.Micros(s.now())
	for name, lane := range map[string]*Lane{queue.LaneFetch: &st.Fetch, queue.LaneTasks: &st.Tasks, queue.LaneBatch: &st.Batch} {
		var oldest int64
		err := s.Config.DB.Read().QueryRowContext(ctx, `SELECT (SELECT CAST(COALESCE(SUM(waiting), 0) AS bigint) FROM lane_accounts WHERE lane = $1),
			(SELECT COUNT(*) FROM tasks WHERE phase = 'delayed' AND lane = $1), (SELECT COUNT(*) FROM tasks WHERE phase = 'running' AND lane = $1),
			COALESCE((SELECT queued_at FROM tasks WHERE phase = 'queued' AND lane = $1 ORDER BY queued_at, id LIMIT 1), $2),
			(SELECT COALESCE(SUM(COALESCE(sound_seconds, $3)), 0) FROM tasks WHERE phase = 'queued' AND lane = $1)`, name, now, s.Config.UnknownLength.Seconds()).
			Scan(&lane.Waiting, &lane.Delayed, &lane.Running, &oldest, &lane.Sound)
		if err != nil {
			return st, s.wrap("stats", err)
		}
		lane.Oldest = max(0, time.Duration(now-oldest)*time.Microsecond)
	}
	var done, failed, abandoned int
	err := s.Config.DB.Read().QueryRowContext(ctx, `SELECT CAST(COALESCE(SUM(done), 0) AS bigint), CAST(COALESCE(SUM(failed), 0) AS bigint), CAST(COALESCE(SUM(abandoned), 0) AS bigint)
		FROM account_sums`).Scan(&done, &failed, &abandoned)
	if err != nil {
		return st, s.wrap("stats", err)
	}
	st.TasksByFinalState = map[Status]int{StatusDone: done, StatusFailed: failed, StatusAbandoned: abandoned}
	var oldest int64
	err = s.Config.DB.Read().QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM callbacks WHERE phase = 'queued'), (SELECT COUNT(*) FROM callbacks WHERE phase = 'running'),
		(SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up'), (SELECT COUNT(*) FROM doomed_blobs WHERE due_at <= $1),
		COALESCE((SELECT MIN(created_at) FROM (SELECT created_at FROM callbacks WHERE phase = 'queued' UNION ALL SELECT created_at FROM callbacks WHERE phase = 'running') x), $1)`, now).
		Scan(&st.CallbacksWaiting, &st.CallbacksRunning, &st.CallbacksGivenUp, &st.FilesToDelete, &oldest)
	if err != nil {
		return st, s.wrap("stats", err)
	}
	st.OldestCallback = max(0, time.Duration(now-oldest)*time.Microsecond)
	if st.ChoresDone, err = s.queue.ChoresDone(ctx); err != nil {
		return st, s.wrap("stats", err)
	}
	st.PausedLanes, err = s.queue.Paused(ctx)
	return st, s.wrap("stats", err)
}

// ErrNotRetryable is returned for a task that can't be run again: it is done,
// waits or runs, or its recording or that of a known speaker has been deleted.
var ErrNotRetryable = errors.New("task cannot be retried")

// Retry runs a task again. A task that waits for its retry is queued now, with
// its remaining attempts. A task that failed for good or was abandoned gets a
// new hold at the prices of its creation, and all its attempts; its old
// callback is withdrawn and its new end is announced, unless the old callback
// has already been deleted (see webhook.Outbox.Forget). A done task is not run
// again, because it would be charged twice. Deleted uploads and deleted
// recordings of known speakers cannot be fetched again.
//
// Errors wrap ErrNotFound, ErrNotRetryable, billing.ErrInsufficientBalance or
// billing.ErrConcurrencyLimit. Retry is for operators and checks no account.
func (s *Operators) Retry(ctx context.Context, id string) (Task, error) {
	t, err := s.change(ctx, "retry", id, func(tx *sql.Tx, r row) error {
		switch {
		case r.phase == "delayed":
			return s.queue.Requeue(ctx, tx, r.ref())
		case !r.Final():
			return fmt.Errorf("%w: %s is %s", ErrNotRetryable, id, r.phase)
		case r.Status == StatusDone:
			return fmt.Errorf("%w: %s is done and charged", ErrNotRetryable, id)
		}
		return s.reopen(ctx, tx, r)
	})
	if err != nil {
		return t, err
	}
	s.Config.Logger.InfoContext(ctx, "task is retried", "task", id, "account", t.AccountID)
	s.queue.Wake(ctx)
	return t, nil
}

// reopen returns a locked task that ended without a result to the queue.
func (s *core) reopen(ctx context.Context, tx *sql.Tx, r row) error {
	if r.AudioSourceType != SourceURL && r.audio == "" {
		return fmt.Errorf("%w: the recording of %s no longer exists: submit it again", ErrNotRetryable, r.ID)
	}
	if len(r.Extras.Voices) > 0 { // their recordings are deleted when the task ends, even if its audio is kept
		return fmt.Errorf("%w: the recordings of the known speakers of %s no longer exist: submit it again", ErrNotRetryable, r.ID)
	}
	prices, sets, err := s.terms(ctx, tx, r.price)
	if err != nil {
		return err
	}
	price, err := s.firstPrice(r.Task, 0, prices, stillNaming(r.Extras.Model, sets))
	if err == nil {
		err = s.billing.Hold(ctx, tx, r.AccountID, r.ID, price, r.BatchMode)
	}
	if err != nil {
		return err
	}
	// Files that the previous end scheduled for deletion are needed again.
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

// TakeBack takes a running task from its worker and queues it, without counting
// an attempt. The worker's writes are refused from then on, and it drops the
// task at its next heartbeat. Errors wrap ErrNotFound or ErrNotRetryable.
func (s *Operators) TakeBack(ctx context.Context, id string) error {
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.lockNamed(ctx, tx, id)
		if err == nil && r.phase != "running" {
			err = fmt.Errorf("%w: %s is %s: no worker has it", ErrNotRetryable, id, r.phase)
		}
		if err != nil {
			return err
		}
		return s.end(ctx, tx, r, EndHandedBack, "taken from its worker by an operator")
	})
	if err == nil {
		s.queue.Wake(ctx)
		s.queue.Changed(ctx)
	}
	return s.wrap("take back", err)
}
