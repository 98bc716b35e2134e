package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/db"
)

// claim is a task in a worker's hands.
type claim struct {
	Task
	attempt int64 // fencing number
	url     string
	blob    string // key of the audio, "" before it is fetched
	worker  string
	path    string // where the audio is on this machine, once it is
}

// claimLock is the advisory lock's key under which claims of transcriptions are taken one after the other on PostgreSQL,
// so that turns are exact: the letters "lane".
const claimLock = 0x6c616e65

// longestDelay is an upper bound of how far in the future a retry can lie. A run_at beyond it was written by a clock that
// has since gone back, and counts as due.
func longestDelay(delays []time.Duration) time.Duration {
	var longest time.Duration
	for _, d := range delays {
		longest = max(longest, d)
	}
	return longest + longest/4 + time.Second
}

// accountInTurn finds, in the lane %[1]s, the account that waited longest for its turn. It goes from account to account
// in the index and does not read the tasks in between, so that long queues cost nothing.
const accountInTurn = `WITH RECURSIVE a (account_id) AS (
		SELECT MIN(account_id) FROM tasks WHERE phase = 'queued' AND lane = '%[1]s'
		UNION ALL
		SELECT (SELECT MIN(account_id) FROM tasks WHERE phase = 'queued' AND lane = '%[1]s' AND account_id > a.account_id) FROM a WHERE a.account_id IS NOT NULL)
	SELECT a.account_id FROM a LEFT JOIN turns u ON u.lane = '%[1]s' AND u.account_id = a.account_id
	WHERE a.account_id IS NOT NULL AND EXISTS (SELECT 1 FROM tasks WHERE lane = '%[1]s' AND account_id = a.account_id AND %[2]s)
	ORDER BY COALESCE(u.served, 0), a.account_id LIMIT 1`

// next gives worker the task whose turn it is, nil when there is none: first a batch task that has waited for BatchWait;
// then the tasks lane; then, when nothing waits there, the batch lane. In a lane the account that waited longest for its
// turn is next, and of its tasks the one that has waited longest.
func (s *Service) next(ctx context.Context, worker, modelSet string) (*claim, error) {
	now := s.now()
	due := []any{db.Micros(now), db.Micros(now.Add(longestDelay(s.RetryDelays)))}
	const isDue = "phase = 'queued' AND (run_at <= $1 OR run_at > $2)"
	var some int
	err := s.db.Read().QueryRowContext(ctx, "SELECT 1 FROM tasks WHERE "+isDue+" LIMIT 1", due...).Scan(&some)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, s.wrap("claim", err)
	}
	var c *claim
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		c = nil
		if err := s.db.AdvisoryLock(ctx, tx, claimLock); err != nil {
			return err
		}
		find := func(query string, args ...any) (found string, err error) {
			err = tx.QueryRowContext(ctx, query, args...).Scan(&found)
			if errors.Is(err, sql.ErrNoRows) {
				return "", nil
			}
			return found, err
		}
		id, err := find("SELECT id FROM tasks WHERE lane = 'batch' AND "+isDue+" AND queued_at <= $3 ORDER BY queued_at, id LIMIT 1"+s.db.ForUpdate(),
			append(due[:2:2], db.Micros(now.Add(-s.BatchWait)))...)
		if err != nil {
			return err
		}
		for _, lane := range []string{laneTasks, laneBatch} {
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
			id, err = find("SELECT id FROM tasks WHERE lane = '"+lane+"' AND account_id = $3 AND "+isDue+" ORDER BY queued_at, id LIMIT 1"+s.db.ForUpdate(), append(due[:2:2], account)...)
			if err != nil {
				return err
			}
		}
		if id == "" {
			return nil
		}
		taken := claim{worker: worker}
		var url, key sql.NullString
		var lane string
		task, err := scanTask(tx.QueryRowContext(ctx, `UPDATE tasks SET phase = 'running', status = 'processing', attempt = attempt + 1, worker_id = $2,
			model_set = $3, claimed_at = $4, updated_at = $4 WHERE id = $1 AND phase = 'queued' RETURNING `+taskColumns+`, attempt, audio_url, audio_blob, lane`,
			id, worker, modelSet, db.Micros(now)), &taken.attempt, &url, &key, &lane)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // deleted or taken since
		}
		if err != nil {
			return err
		}
		taken.Task, taken.url, taken.blob = task, url.String, key.String
		if _, err := tx.ExecContext(ctx, `INSERT INTO turns (lane, account_id, served) VALUES ($1, $2, (SELECT COALESCE(MAX(served), 0) + 1 FROM turns WHERE lane = $1))
			ON CONFLICT (lane, account_id) DO UPDATE SET served = excluded.served`, lane, task.AccountID); err != nil {
			return err
		}
		c = &taken
		return nil
	})
	return c, s.wrap("claim", err)
}

// held reports whether the claim is still current.
func (s *Service) held(ctx context.Context, c *claim) (bool, error) {
	var one int
	err := s.db.Read().QueryRowContext(ctx, "SELECT 1 FROM tasks WHERE id = $1 AND attempt = $2 AND phase = 'running'", c.ID, c.attempt).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, s.wrap("check claim", err)
}

// row is what the writers of a running task read under its lock.
type row struct {
	Task
	attempt, failures, crashes, interruptions int64
	phase, worker, lane                       string
	price                                     int64
	audio, result                             string
	callbackURL, callbackSecret               sql.NullString
}

func (s *Service) lockTask(ctx context.Context, tx *sql.Tx, id string) (row, error) {
	var r row
	var worker, audio, result sql.NullString
	var err error
	r.Task, err = scanTask(tx.QueryRowContext(ctx, "SELECT "+taskColumns+`, attempt, failures, crashes, interruptions, phase, worker_id, lane, price_id,
		audio_blob, result_blob, callback_url, callback_secret FROM tasks WHERE id = $1`+s.db.ForUpdate(), id),
		&r.attempt, &r.failures, &r.crashes, &r.interruptions, &r.phase, &worker, &r.lane, &r.price, &audio, &result, &r.callbackURL, &r.callbackSecret)
	r.worker, r.audio, r.result = worker.String, audio.String, result.String
	return r, err
}

// guard locks the claim's task and checks that the claim is current; else the error wraps ErrSuperseded.
func (s *Service) guard(ctx context.Context, tx *sql.Tx, c *claim) (row, error) {
	r, err := s.lockTask(ctx, tx, c.ID)
	if errors.Is(err, sql.ErrNoRows) || (err == nil && !r.current(c)) {
		return r, ErrSuperseded
	}
	return r, err
}

// current reports whether the task is still the claim's.
func (r row) current(c *claim) bool { return r.phase == "running" && r.attempt == c.attempt }
