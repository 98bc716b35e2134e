package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

// Overview is the state of the queue for an operator.
type Overview struct {
	Accounts []AccountState `json:"accounts"` // accounts with unfinished tasks, by name
	Lanes    []LaneState    `json:"lanes"`    // tasks first
	Workers  []WorkerState  `json:"workers"`  // by id
}

// Load counts the unfinished tasks of a lane, or of an account in a lane.
type Load struct {
	Waiting int        `json:"waiting"` // could run now
	Running int        `json:"running"`
	Delayed int        `json:"delayed"` // tasks that wait for their delay
	Oldest  *time.Time `json:"oldest"`  // the time at which the oldest waiting task was queued; nil without one
}

// LaneState is the state of a lane.
type LaneState struct {
	Lane   string `json:"lane"`
	Paused bool   `json:"paused"`
	Load
}

// AccountState is an account's load in a lane.
type AccountState struct {
	AccountID string `json:"id"`
	Account   string `json:"account"` // its name
	Lane      string `json:"lane"`
	Load
}

// WorkerState is a worker process with a heartbeat row.
type WorkerState struct {
	ID        string    `json:"id"`
	Version   string    `json:"version"`
	PID       int       `json:"pid"`
	TaskID    string    `json:"task,omitempty"`  // the running task, "" for none
	Stage     string    `json:"stage,omitempty"` // of the running task, as last reported
	Since     time.Time `json:"since,omitzero"`  // the time at which the running task was claimed
	StartedAt time.Time `json:"started_at"`
	BeatAt    time.Time `json:"beat_at"`
}

// Overview reads lanes, accounts and workers.
func (q *Queue) Overview(ctx context.Context) (Overview, error) {
	var o Overview
	paused, err := q.Paused(ctx)
	if err != nil {
		return o, err
	}
	for _, lane := range slices.Backward(slices.Sorted(maps.Keys(paused))) {
		o.Lanes = append(o.Lanes, LaneState{Lane: lane, Paused: paused[lane]})
	}
	// Counts each phase separately, with its index.
	o.Accounts, err = db.Select(ctx, q.config.DB.Read(), func(row db.Row, a *AccountState) error {
		return row.Scan(&a.AccountID, &a.Account, &a.Lane, &a.Waiting, &a.Running, &a.Delayed, db.ScanOptionalTime(&a.Oldest))
	}, `SELECT x.account_id, a.name, x.lane, SUM(x.waiting), SUM(x.running), SUM(x.delayed), NULLIF(MAX(x.oldest), 0) FROM (
		SELECT account_id, lane, COUNT(*) AS waiting, 0 AS running, 0 AS delayed, MIN(queued_at) AS oldest FROM tasks WHERE phase = 'queued' GROUP BY account_id, lane
		UNION ALL SELECT account_id, lane, 0, COUNT(*), 0, 0 FROM tasks WHERE phase = 'running' GROUP BY account_id, lane
		UNION ALL SELECT account_id, lane, 0, 0, COUNT(*), 0 FROM tasks WHERE phase = 'delayed' GROUP BY account_id, lane
		) x JOIN accounts a ON a.id = x.account_id GROUP BY x.account_id, a.name, x.lane ORDER BY a.name, x.lane DESC`)
	if err != nil {
		return o, q.wrap("overview", err)
	}
	for _, a := range o.Accounts {
		for i := range o.Lanes {
			if o.Lanes[i].Lane == a.Lane {
				o.Lanes[i].add(a.Load)
			}
		}
	}
	o.Workers, err = db.Select(ctx, q.config.DB.Read(), func(row db.Row, w *WorkerState) error {
		return row.Scan(&w.ID, &w.Version, &w.PID, &w.TaskID, &w.Stage, db.ScanTime(&w.Since), db.ScanTime(&w.StartedAt), db.ScanTime(&w.BeatAt))
	}, `SELECT w.id, w.version, w.pid, COALESCE(t.id, ''), CASE WHEN t.id = w.task_id THEN w.stage ELSE '' END, t.claimed_at, w.started_at, w.beat_at
		FROM workers w LEFT JOIN tasks t ON t.worker_id = w.id AND t.phase = 'running'
		WHERE w.kind = $1 ORDER BY w.id, t.id`, string(Worker))
	return o, q.wrap("overview", err)
}

func (l *Load) add(other Load) {
	l.Waiting += other.Waiting
	l.Running += other.Running
	l.Delayed += other.Delayed
	if l.Oldest == nil || other.Oldest != nil && other.Oldest.Before(*l.Oldest) {
		l.Oldest = other.Oldest
	}
}

// Paused returns the lanes and whether each is paused.
func (q *Queue) Paused(ctx context.Context) (map[string]bool, error) {
	paused, err := db.Map(ctx, q.config.DB.Read(), func(paused *bool) any { return paused }, "SELECT lane, paused FROM lanes")
	return paused, q.wrap("lanes", err)
}

// Item is a task in an operator's list.
type Item struct {
	TaskID   string    `json:"task"`
	Account  string    `json:"account"` // its name
	Lane     string    `json:"lane"`
	Phase    string    `json:"phase"`
	Status   string    `json:"status"`
	Attempt  int       `json:"attempt"`
	Failures int       `json:"failures"`
	WorkerID string    `json:"worker,omitempty"`
	QueuedAt time.Time `json:"queued_at"`
	RunAt    time.Time `json:"run_at,omitzero"` // of a delayed task, else zero
	Error    string    `json:"error,omitempty"`
}

// ListFilter selects the tasks of a list.
type ListFilter struct {
	AccountID string // "" for all
	Lane      string // "" for both
	// Ended selects the tasks that ended without a result instead, newest
	// first. It requires AccountID, because the index is by account.
	Ended bool
	Limit int
}

// List returns tasks, ordered by their waiting time, the longest first.
func (q *Queue) List(ctx context.Context, f ListFilter) ([]Item, error) {
	// Each phase has an index.
	from, where, order := `(SELECT * FROM tasks WHERE phase = 'queued' UNION ALL SELECT * FROM tasks WHERE phase = 'running' UNION ALL SELECT * FROM tasks WHERE phase = 'delayed')`, "1 = 1", "t.queued_at, t.id"
	if f.Ended {
		from, where, order = "tasks", "t.phase = 'final' AND t.status <> 'done'", "t.created_at DESC, t.id DESC"
	}
	items, err := db.Select(ctx, q.config.DB.Read(), func(row db.Row, i *Item) error {
		return row.Scan(&i.TaskID, &i.Account, &i.Lane, &i.Phase, &i.Status, &i.Attempt, &i.Failures, &i.WorkerID, db.ScanTime(&i.QueuedAt), db.ScanTime(&i.RunAt), &i.Error)
	}, `SELECT t.id, a.name, t.lane, t.phase, t.status, t.attempt, t.failures, COALESCE(t.worker_id, ''), t.queued_at, NULLIF(t.run_at, 0), COALESCE(t.error_message, '')
		FROM `+from+` t JOIN accounts a ON a.id = t.account_id
		WHERE `+where+" AND ($1 = '' OR t.account_id = $1) AND ($2 = '' OR t.lane = $2) ORDER BY "+order+" LIMIT $3", f.AccountID, f.Lane, f.Limit)
	return items, q.wrap("list", err)
}

// ErrNoLane is returned for a lane that does not exist.
var ErrNoLane = errors.New("lane does not exist")

// SetPaused pauses or resumes a lane. Workers claim no tasks from a paused
// lane; running tasks continue, and new ones are accepted.
func (q *Queue) SetPaused(ctx context.Context, lane string, paused bool) error {
	n, err := q.config.DB.Exec(ctx, "UPDATE lanes SET paused = $2 WHERE lane = $1", lane, paused)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: %.40q", ErrNoLane, lane)
	}
	if err == nil && !paused {
		q.Wake(ctx)
	}
	return q.wrap("pause", err)
}
