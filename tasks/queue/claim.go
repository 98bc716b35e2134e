package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/db"
)

// Claim is a worker's hold on one task.
type Claim struct {
	TaskID    string
	AccountID string
	Lane      string
	Worker    string
	Attempt   int64 // fencing number
}

// claimLock is the advisory lock's key under which claims of transcriptions are taken one after the other on PostgreSQL,
// so that turns are exact: the letters "lane".
const claimLock = 0x6c616e65

// accountInTurn finds, in the lane %[1]s, the account that waited longest for its turn. It goes from account to account
// in the index and does not read the tasks in between, so that long queues cost nothing.
const accountInTurn = `WITH RECURSIVE a (account_id) AS (
		SELECT MIN(account_id) FROM tasks WHERE phase = 'queued' AND lane = '%[1]s'
		UNION ALL
		SELECT (SELECT MIN(account_id) FROM tasks WHERE phase = 'queued' AND lane = '%[1]s' AND account_id > a.account_id) FROM a WHERE a.account_id IS NOT NULL)
	SELECT a.account_id FROM a LEFT JOIN turns u ON u.lane = '%[1]s' AND u.account_id = a.account_id
	WHERE a.account_id IS NOT NULL AND EXISTS (SELECT 1 FROM tasks WHERE lane = '%[1]s' AND account_id = a.account_id AND %[2]s)
	ORDER BY COALESCE(u.served, 0), a.account_id LIMIT 1`

// Next claims for worker the task whose turn it is, and returns nil when there is none: first a batch task that has
// waited for BatchWait; then the tasks lane; then, when nothing waits there, the batch lane. In a lane the account that
// waited longest for its turn is next, and of its tasks the one that has waited longest. read is called in the claim's
// transaction: what it can't read is not claimed.
func (q *Queue) Next(ctx context.Context, worker, modelSet string, read func(tx *sql.Tx, c *Claim) error) (*Claim, error) {
	now := q.now()
	due := []any{db.Micros(now), db.Micros(now.Add(q.config.Horizon))}
	const isDue = "phase = 'queued' AND (run_at <= $1 OR run_at > $2)"
	var some int
	err := q.config.DB.Read().QueryRowContext(ctx, "SELECT 1 FROM tasks WHERE "+isDue+" LIMIT 1", due...).Scan(&some)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, q.wrap("claim", err)
	}
	var c *Claim
	err = q.config.DB.Write(ctx, func(tx *sql.Tx) error {
		c = nil
		if err := q.config.DB.AdvisoryLock(ctx, tx, claimLock); err != nil {
			return err
		}
		find := func(query string, args ...any) (found string, err error) {
			err = tx.QueryRowContext(ctx, query, args...).Scan(&found)
			if errors.Is(err, sql.ErrNoRows) {
				return "", nil
			}
			return found, err
		}
		id, err := find("SELECT id FROM tasks WHERE lane = 'batch' AND "+isDue+" AND queued_at <= $3 ORDER BY queued_at, id LIMIT 1"+q.config.DB.ForUpdate(),
			append(due[:2:2], db.Micros(now.Add(-q.config.BatchWait)))...)
		if err != nil {
			return err
		}
		for _, lane := range []string{LaneTasks, LaneBatch} {
			if id != "" {
				break
			}
			account, err := find(fmt.Sprintf(accountInTurn, lane, isDue), due...)
			if err != nil {
				return err
			}
			if account == "" {
				continue
			}
			id, err = find("SELECT id FROM tasks WHERE lane = '"+lane+"' AND account_id = $3 AND "+isDue+" ORDER BY queued_at, id LIMIT 1"+q.config.DB.ForUpdate(), append(due[:2:2], account)...)
			if err != nil {
				return err
			}
		}
		if id == "" {
			return nil
		}
		taken := Claim{TaskID: id, Worker: worker}
		err = tx.QueryRowContext(ctx, `UPDATE tasks SET phase = 'running', status = 'processing', attempt = attempt + 1, worker_id = $2,
			model_set = $3, claimed_at = $4, updated_at = $4 WHERE id = $1 AND phase = 'queued' RETURNING attempt, account_id, lane`,
			id, worker, modelSet, db.Micros(now)).Scan(&taken.Attempt, &taken.AccountID, &taken.Lane)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // deleted or taken since
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO turns (lane, account_id, served) VALUES ($1, $2, (SELECT COALESCE(MAX(served), 0) + 1 FROM turns WHERE lane = $1))
			ON CONFLICT (lane, account_id) DO UPDATE SET served = excluded.served`, taken.Lane, taken.AccountID); err != nil {
			return err
		}
		if err := read(tx, &taken); err != nil {
			return err
		}
		c = &taken
		return nil
	})
	return c, q.wrap("claim", err)
}

// Current reports whether the claim still holds its task.
func (q *Queue) Current(ctx context.Context, c *Claim) (bool, error) {
	var one int
	err := q.config.DB.Read().QueryRowContext(ctx, "SELECT 1 FROM tasks WHERE id = $1 AND attempt = $2 AND phase = 'running'", c.TaskID, c.Attempt).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, q.wrap("check claim", err)
}
