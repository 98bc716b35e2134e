package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/system/db"
)

// claimFunc claims a task for c.Worker and names it in c; the error is
// sql.ErrNoRows if there is none.
type claimFunc func(ctx context.Context, tx *sql.Tx, c *Claim) error

// Claim is a worker's hold on one task.
type Claim struct {
	TaskID, AccountID, Lane, Worker string
	Attempt                         int64 // fencing number
}

// taken is the list of columns that a claim sets in the task's row; $1 is the
// worker, $2 its model set, $3 the time.
const taken = `phase = 'running', status = 'processing', error_message = NULL, attempt = attempt + 1, worker_id = $1, model_set = $2, claimed_at = $3, updated_at = $3`

// inTurn claims on PostgreSQL, in one statement, the oldest task of the next
// account in lane %[1]s. It skips accounts and tasks that other transactions
// have locked, so that claims do not wait for one another. The account is
// selected without a join, which would read and sort all its tasks.
const inTurn = `WITH who AS (
		SELECT account_id FROM lane_accounts WHERE lane = '%[1]s' AND waiting > 0 AND NOT stopped ORDER BY served, account_id LIMIT 1 FOR UPDATE SKIP LOCKED),
	pick AS (
		SELECT id, account_id FROM tasks WHERE account_id = (SELECT account_id FROM who)
		AND phase = 'queued' AND lane = '%[1]s' ORDER BY queued_at, id LIMIT 1 FOR UPDATE SKIP LOCKED),
	turn AS (
		UPDATE lane_accounts l SET served = nextval('turns'), waiting = waiting - 1 FROM pick WHERE l.lane = '%[1]s' AND l.account_id = pick.account_id)
	UPDATE tasks SET ` + taken + ` FROM pick WHERE tasks.id = pick.id RETURNING tasks.id, tasks.account_id, tasks.lane, tasks.attempt`

// someDue reports whether a task's delay is over; $1 is the time, $2 the
// horizon. It reads the ends of an index, because PostgreSQL would run EXISTS
// as a scan of the whole table.
const someDue = `COALESCE((SELECT run_at FROM tasks WHERE phase = 'delayed' ORDER BY run_at LIMIT 1) <= $1
		OR (SELECT run_at FROM tasks WHERE phase = 'delayed' ORDER BY run_at DESC LIMIT 1) > $2, FALSE)`

// notStopped selects the batch tasks of accounts that are not stopped.
const notStopped = "NOT EXISTS (SELECT 1 FROM lane_accounts l WHERE l.lane = 'batch' AND l.account_id = tasks.account_id AND l.stopped)"

// look is the state of the queue before a claim, read by a single query.
type look struct{ due, aged, tasks, batch bool }

// Next claims the next task for worker and returns nil if there is none: first
// a batch task that has waited for BatchWait; then the tasks lane; then, if
// that is empty, the batch lane. Within a lane, the account that has not been
// served for the longest time is next, with its oldest waiting task. Tasks
// whose delay is over are queued first.
//
// read is called in the claim's transaction: if it fails, nothing is claimed.
// Tasks of stopped accounts wait (see Stop).
func (q *Queue) Next(ctx context.Context, worker, modelSet string, read func(tx *sql.Tx, c *Claim) error) (*Claim, error) {
	seen, err := q.look(ctx)
	if err != nil {
		return nil, q.wrap("claim", err)
	}
	if seen.due {
		if _, err := q.Sweep(ctx); err != nil {
			return nil, err
		}
		if seen, err = q.look(ctx); err != nil {
			return nil, q.wrap("claim", err)
		}
	}
	c, err := q.first(ctx, worker, q.ways(seen, modelSet), read)
	return c, q.wrap("claim", err)
}

// ways returns the ways to claim one of the seen tasks, in the order in which
// they are tried. On PostgreSQL the first way of a lane waits for no lock; the
// second is used if others have locked all accounts.
func (q *Queue) ways(seen look, modelSet string) (ways []claimFunc) {
	if seen.aged {
		ways = append(ways, q.claimAged(modelSet))
	}
	for _, lane := range []struct {
		name    string
		waiting bool
	}{{LaneTasks, seen.tasks}, {LaneBatch, seen.batch}} {
		if !lane.waiting {
			continue
		}
		if q.config.DB.Dialect() == db.Postgres {
			ways = append(ways, func(ctx context.Context, tx *sql.Tx, c *Claim) error { // the oldest task of the next account, without a wait
				return tx.QueryRowContext(ctx, fmt.Sprintf(inTurn, lane.name), c.Worker, modelSet, db.Micros(q.now())).Scan(&c.TaskID, &c.AccountID, &c.Lane, &c.Attempt)
			})
		}
		ways = append(ways, q.claimWaiting(lane.name, modelSet))
	}
	return ways
}

// first tries the claim functions, each in its own transaction, until one
// returns a task, else nil. An error of read rolls the claim back.
func (q *Queue) first(ctx context.Context, worker string, ways []claimFunc, read func(tx *sql.Tx, c *Claim) error) (*Claim, error) {
	for _, way := range ways {
		c, found := &Claim{}, false
		err := q.config.DB.Write(ctx, func(tx *sql.Tx) (err error) {
			*c = Claim{Worker: worker}
			if found, err = db.Found(way(ctx, tx, c)); !found {
				return err
			}
			return read(tx, c)
		})
		if err != nil {
			return nil, err
		}
		if found {
			return c, nil
		}
	}
	return nil, nil
}

// look reads the state of the queue for a claim, a probe of an index a field.
func (q *Queue) look(ctx context.Context) (look, error) {
	now := q.now()
	var l look
	var tasksPaused, batchPaused bool
	err := q.config.DB.Read().QueryRowContext(ctx, `SELECT
		`+someDue+`,
		(SELECT id FROM tasks WHERE phase = 'queued' AND lane = 'batch' AND queued_at <= $3 AND `+notStopped+` ORDER BY queued_at, id LIMIT 1) IS NOT NULL,
		(SELECT account_id FROM lane_accounts WHERE lane = 'tasks' AND waiting > 0 AND NOT stopped ORDER BY served, account_id LIMIT 1) IS NOT NULL,
		(SELECT account_id FROM lane_accounts WHERE lane = 'batch' AND waiting > 0 AND NOT stopped ORDER BY served, account_id LIMIT 1) IS NOT NULL,
		(SELECT paused FROM lanes WHERE lane = 'tasks'), (SELECT paused FROM lanes WHERE lane = 'batch')`,
		db.Micros(now), db.Micros(now.Add(q.config.Horizon)), db.Micros(now.Add(-q.config.BatchWait))).
		Scan(&l.due, &l.aged, &l.tasks, &l.batch, &tasksPaused, &batchPaused)
	l.tasks = l.tasks && !tasksPaused
	l.batch, l.aged = l.batch && !batchPaused, l.aged && !batchPaused
	return l, err
}

func (q *Queue) claimAged(modelSet string) claimFunc {
	return func(ctx context.Context, tx *sql.Tx, c *Claim) error {
		err := tx.QueryRowContext(ctx, "SELECT id, account_id FROM tasks WHERE lane = 'batch' AND phase = 'queued' AND queued_at <= $1 AND "+notStopped+" ORDER BY queued_at, id LIMIT 1"+q.config.DB.SkipLocked(),
			db.Micros(q.now().Add(-q.config.BatchWait))).Scan(&c.TaskID, &c.AccountID)
		if err != nil {
			return err
		}
		return q.take(ctx, tx, LaneBatch, modelSet, c)
	}
}

// claimWaiting claims the oldest task of the next account in lane, and waits
// for transactions that have locked that account.
func (q *Queue) claimWaiting(lane, modelSet string) claimFunc {
	return func(ctx context.Context, tx *sql.Tx, c *Claim) error {
		for range longestSearch {
			err := tx.QueryRowContext(ctx, "SELECT account_id FROM lane_accounts WHERE lane = $1 AND waiting > 0 AND NOT stopped ORDER BY served, account_id LIMIT 1"+q.config.DB.ForUpdate(), lane).Scan(&c.AccountID)
			if err != nil {
				return err
			}
			err = tx.QueryRowContext(ctx, "SELECT id FROM tasks WHERE lane = $1 AND account_id = $2 AND phase = 'queued' ORDER BY queued_at, id LIMIT 1"+q.config.DB.SkipLocked(), lane, c.AccountID).Scan(&c.TaskID)
			switch {
			case err == nil:
				return q.take(ctx, tx, lane, modelSet, c)
			case !errors.Is(err, sql.ErrNoRows):
				return err
			}
			// The account's tasks are being claimed or canceled: try the next
			// account, then this one again.
			if err := db.Do(ctx, tx, `UPDATE lane_accounts SET waiting = (SELECT COUNT(*) FROM tasks WHERE lane = $1 AND account_id = $2 AND phase = 'queued')
				WHERE lane = $1 AND account_id = $2`, lane, c.AccountID); err != nil {
				return err
			}
		}
		return sql.ErrNoRows
	}
}

// longestSearch is the most accounts without a task that a claim passes over.
const longestSearch = 16

// take records the claim of the task that c names.
func (q *Queue) take(ctx context.Context, tx *sql.Tx, lane, modelSet string, c *Claim) error {
	c.Lane = lane
	err := tx.QueryRowContext(ctx, "UPDATE tasks SET "+taken+" WHERE id = $4 AND phase = 'queued' RETURNING attempt", c.Worker, modelSet, db.Micros(q.now()), c.TaskID).Scan(&c.Attempt)
	if err != nil {
		return err
	}
	turn := "(SELECT MAX(served) + 1 FROM lane_accounts WHERE lane = $1)"
	if q.config.DB.Dialect() == db.Postgres {
		turn = "nextval('turns')"
	}
	return db.Do(ctx, tx, "UPDATE lane_accounts SET served = "+turn+", waiting = waiting - 1 WHERE lane = $1 AND account_id = $2", lane, c.AccountID)
}

// Stop makes claims skip the account's tasks in a lane until the account gets
// money or one of its holds ends, which triggers of the database detect. The
// caller holds the account's lock, so that incoming money is not missed.
func (q *Queue) Stop(ctx context.Context, tx *sql.Tx, lane, account string) error {
	return db.Do(ctx, tx, "UPDATE lane_accounts SET stopped = TRUE WHERE lane = $1 AND account_id = $2", lane, account)
}

// Current reports whether the claim still holds its task.
func (q *Queue) Current(ctx context.Context, c *Claim) (bool, error) {
	var one int
	found, err := db.Found(q.config.DB.Read().QueryRowContext(ctx, "SELECT 1 FROM tasks WHERE id = $1 AND attempt = $2 AND phase = 'running'", c.TaskID, c.Attempt).Scan(&one))
	return found, q.wrap("check claim", err)
}
