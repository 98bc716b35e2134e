package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/db"
)

// Busy is what a fetcher must not claim now.
type Busy struct {
	Accounts []string // ids
	Hosts    []string // as in the tasks' audio_host
	// Ahead is how many tasks of an account may wait for a worker in the lane
	// that a fetched task goes to: beyond it, nothing more is fetched for that
	// lane and account, so that audio does not pile up in the file store. Nothing
	// is fetched for an account that is stopped there.
	Ahead int
}

// NextFetch claims for worker a task of the lane "fetch" that busy does not rule
// out, and returns nil when there is none. Accounts take turns; of an account's
// tasks those that are not batch tasks go first, then the oldest.
//
// read is called in the claim's transaction: what it can't read is not claimed.
func (q *Queue) NextFetch(ctx context.Context, worker string, busy Busy, read func(tx *sql.Tx, c *Claim) error) (*Claim, error) {
	seen, err := q.lookFetch(ctx, worker, busy)
	if err == nil && seen.due && !seen.closed {
		if _, err = q.Sweep(ctx); err == nil {
			seen, err = q.lookFetch(ctx, worker, busy)
		}
	}
	if err != nil || seen.closed || !seen.waiting {
		return nil, q.wrap("claim download", err)
	}
	c, err := q.first(ctx, worker, []claimFunc{q.fetchWay(busy)}, read)
	return c, q.wrap("claim download", err)
}

// fetchLook is what reads say about the downloads before anything is claimed.
type fetchLook struct{ closed, due, waiting bool }

// lookFetch reads what a claim of a download can find.
func (q *Queue) lookFetch(ctx context.Context, worker string, busy Busy) (l fetchLook, err error) {
	now := q.now()
	var draining, paused bool
	err = q.config.DB.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM workers WHERE id = $1 AND draining),
		COALESCE((SELECT paused FROM lanes WHERE lane = 'fetch'), FALSE),
		`+someDue,
		worker, db.Micros(now), db.Micros(now.Add(q.config.Horizon))).Scan(&draining, &paused, &l.due)
	if l.closed = draining || paused; l.closed || err != nil {
		return l, err
	}
	account, args := busy.account()
	err = q.config.DB.Read().QueryRowContext(ctx, account, args...).Scan(new(string))
	l.waiting = err == nil
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return l, err
}

// fetchWay claims the download whose turn it is, of those that others have not
// locked.
func (q *Queue) fetchWay(busy Busy) claimFunc {
	return func(ctx context.Context, tx *sql.Tx, c *Claim) error {
		account, args := busy.account()
		if err := tx.QueryRowContext(ctx, account+q.config.DB.SkipLocked(), args...).Scan(&c.AccountID); err != nil {
			return err
		}
		where, args := busy.tasks()
		task := fmt.Sprintf("SELECT id FROM tasks t WHERE t.account_id = $%d AND %s ORDER BY t.batch_mode, t.queued_at, t.id LIMIT 1", len(args)+1, where)
		if err := tx.QueryRowContext(ctx, task+q.config.DB.SkipLocked(), append(args, c.AccountID)...).Scan(&c.TaskID); err != nil {
			return err
		}
		return q.take(ctx, tx, LaneFetch, "", c)
	}
}

// account returns the query for the account whose turn it is among those with a
// task that b does not rule out.
func (b Busy) account() (query string, args []any) {
	where, args := b.tasks()
	return `SELECT l.account_id FROM lane_accounts l WHERE l.lane = 'fetch' AND l.waiting > 0
		AND EXISTS (SELECT 1 FROM tasks t WHERE t.account_id = l.account_id AND ` + where + `) ORDER BY l.served, l.account_id LIMIT 1`, args
}

// tasks returns the condition on tasks t that b does not rule out.
func (b Busy) tasks() (where string, args []any) {
	list := func(values []string) string {
		var marks []string
		for _, v := range values {
			args = append(args, v)
			marks = append(marks, fmt.Sprintf("$%d", len(args)))
		}
		return strings.Join(marks, ", ")
	}
	where = "t.lane = 'fetch' AND t.phase = 'queued'"
	if len(b.Accounts) > 0 {
		where += " AND t.account_id NOT IN (" + list(b.Accounts) + ")"
	}
	if len(b.Hosts) > 0 {
		where += " AND COALESCE(t.audio_host, '') NOT IN (" + list(b.Hosts) + ")"
	}
	args = append(args, b.Ahead)
	where += fmt.Sprintf(` AND COALESCE((SELECT CASE WHEN w.stopped THEN 1000000000 ELSE w.waiting END FROM lane_accounts w WHERE w.account_id = t.account_id
		AND w.lane = CASE WHEN t.batch_mode THEN 'batch' ELSE 'tasks' END), 0) < $%d`, len(args))
	return where, args
}
