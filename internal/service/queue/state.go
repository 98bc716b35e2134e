package queue

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

// wakeChannel is notified when a task can be claimed.
const wakeChannel = "otograph_tasks"

// sweepSize is the maximum number of delayed tasks that one transaction queues.
const sweepSize = 256

// Ref names a task and its account and lane.
type Ref struct{ TaskID, AccountID, Lane string }

// Added counts a task that was inserted in the phase "queued" in the same
// transaction. Call Wake after the commit.
func (q *Queue) Added(ctx context.Context, tx *sql.Tx, r Ref) error { return q.count(ctx, tx, r, 1) }

// Withdrawn counts a task that left "queued" unclaimed in the transaction.
func (q *Queue) Withdrawn(ctx context.Context, tx *sql.Tx, r Ref) error {
	return q.count(ctx, tx, r, -1)
}

// Requeue moves a running or delayed task whose row is locked to the phase
// "queued". Call Wake after the commit.
func (q *Queue) Requeue(ctx context.Context, tx *sql.Tx, r Ref) error {
	if _, err := tx.ExecContext(ctx, "UPDATE tasks SET phase = 'queued', run_at = 0, worker_id = NULL, updated_at = $2 WHERE id = $1", r.TaskID, db.Micros(q.now())); err != nil {
		return err
	}
	return q.count(ctx, tx, r, 1)
}

// Delay moves a running, locked task to the phase "delayed" for a pause.
func (q *Queue) Delay(ctx context.Context, tx *sql.Tx, r Ref, pause time.Duration) error {
	now := q.now()
	return db.Do(ctx, tx, "UPDATE tasks SET phase = 'delayed', run_at = $2, worker_id = NULL, updated_at = $3 WHERE id = $1", r.TaskID, db.Micros(now.Add(pause)), db.Micros(now))
}

// Sweep queues the tasks whose delay is over and returns their number. A time
// beyond the horizon is from before the clock was set back, and counts as past.
func (q *Queue) Sweep(ctx context.Context) (int, error) {
	swept := 0
	for {
		n := 0
		err := q.config.DB.Write(ctx, func(tx *sql.Tx) error {
			now := q.now()
			queued, err := db.Select(ctx, tx, func(row db.Row, r *Ref) error { return row.Scan(&r.Lane, &r.AccountID) },
				`UPDATE tasks SET phase = 'queued', run_at = 0 WHERE id IN (SELECT id FROM tasks
				WHERE phase = 'delayed' AND (run_at <= $1 OR run_at > $2) ORDER BY run_at LIMIT $3`+q.config.DB.SkipLocked()+`) RETURNING lane, account_id`,
				db.Micros(now), db.Micros(now.Add(q.config.Horizon)), sweepSize)
			if err != nil {
				return err
			}
			n = len(queued)
			counts := map[Ref]int{}
			for _, r := range queued {
				counts[r]++
			}
			// In one order, so that concurrent sweeps do not deadlock.
			for _, r := range slices.SortedFunc(maps.Keys(counts), func(a, b Ref) int {
				return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.AccountID, b.AccountID))
			}) {
				if err := q.count(ctx, tx, r, counts[r]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return swept, q.wrap("sweep", err)
		}
		if swept += n; n < sweepSize {
			if swept > 0 {
				q.Wake(ctx)
			}
			return swept, nil
		}
	}
}

func (q *Queue) count(ctx context.Context, tx *sql.Tx, r Ref, change int) error {
	return db.Do(ctx, tx, `INSERT INTO lane_accounts (lane, account_id, waiting) VALUES ($1, $2, $3)
		ON CONFLICT (lane, account_id) DO UPDATE SET waiting = lane_accounts.waiting + excluded.waiting`, r.Lane, r.AccountID, change)
}

// Wake notifies idle workers that a task can be claimed.
func (q *Queue) Wake(ctx context.Context) { q.config.DB.Notify(ctx, wakeChannel) }

// Wakeups returns a channel that receives after each Wake, until ctx is done.
// Wake-ups can be lost: poll the queue occasionally as well.
func (q *Queue) Wakeups(ctx context.Context) <-chan struct{} {
	return q.config.DB.Subscribe(ctx, wakeChannel)
}

// NextDue returns the time at which the first delayed task can run; ok is false
// without one.
func (q *Queue) NextDue(ctx context.Context) (at time.Time, ok bool, err error) {
	ok, err = db.Found(q.config.DB.Read().QueryRowContext(ctx, "SELECT run_at FROM tasks WHERE phase = 'delayed' ORDER BY run_at LIMIT 1").Scan(db.ScanTime(&at)))
	return at, ok, q.wrap("next delayed task", err)
}
