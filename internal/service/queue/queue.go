// Package queue decides which task runs next and on which worker.
//
// The tasks table is the queue, on PostgreSQL and on SQLite: a row in the phase
// "queued" waits for a worker, a row in the phase "running" belongs to the
// worker that it names. A claim assigns a task to a worker with a fencing
// number (attempt) that rises with every claim; the worker's later writes only
// count while that number is current. Processes that hold work keep a heartbeat
// row, and a Watch detects dead ones.
package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/system/db"
)

// Lanes of the queue: the batch lane waits for the tasks lane. In the fetch
// lane, tasks wait until a fetcher has downloaded their audio.
const (
	LaneFetch = "fetch"
	LaneTasks = "tasks"
	LaneBatch = "batch"
)

// ErrSuperseded is returned for a claim that is over: the task was assigned to
// another worker, has ended, or was deleted.
var ErrSuperseded = errors.New("claim is superseded")

// Config holds a Queue's dependencies and policy. All fields are required.
type Config struct {
	DB        *db.DB // migrated
	Clock     func() time.Time
	Logger    *slog.Logger
	BatchWait time.Duration // batch tasks that have waited this long go before the tasks lane
	Horizon   time.Duration // the longest delay of a task
}

// Queue is the queue of tasks in one database. It is safe for concurrent use,
// by any number of processes.
type Queue struct{ config Config }

// New returns the queue in a migrated database.
func New(c Config) *Queue { return &Queue{config: c} }

func (q *Queue) now() time.Time { return db.Time(db.Micros(q.config.Clock())) }

func (q *Queue) wrap(what string, err error) error { return q.config.DB.Wrap("queue: "+what, err) }

// choreLease is the time after which another process takes over a chore whose
// process died. A chore that takes longer may run twice at the same time.
const choreLease = 10 * time.Minute

// Chore runs work if it is due and no other process runs it, and then makes it
// due again after every. A due time or lease too far in the future is from
// before the clock was set back, and counts as past. Failed work is also due
// again after every.
func (q *Queue) Chore(ctx context.Context, name string, every time.Duration, work func(context.Context) error) error {
	holder, now := uuid.NewString(), q.now()
	taken, err := q.config.DB.Exec(ctx, `INSERT INTO chores (name, due_at, holder, lease_until) VALUES ($1, $3, $2, $4)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until
		WHERE (chores.due_at <= $3 OR chores.due_at > $5) AND (chores.lease_until <= $3 OR chores.lease_until > $4)`,
		name, holder, db.Micros(now), db.Micros(now.Add(choreLease)), db.Micros(now.Add(every)))
	if err != nil || taken == 0 {
		return q.wrap("chore "+name, err)
	}
	failed := work(ctx)
	var done any
	if now = q.now(); failed == nil {
		done = db.Micros(now)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err = q.config.DB.Exec(ctx, "UPDATE chores SET due_at = $3, holder = NULL, lease_until = 0, done_at = COALESCE($4, done_at) WHERE name = $1 AND holder = $2",
		name, holder, db.Micros(now.Add(every)), done)
	return errors.Join(failed, q.wrap("chore "+name, err))
}

// ChoresDone returns the time at which each chore last succeeded, if it has.
func (q *Queue) ChoresDone(ctx context.Context) (map[string]time.Time, error) {
	done, err := db.Map(ctx, q.config.DB.Read(), func(at *time.Time) any { return db.ScanTime(at) }, "SELECT name, done_at FROM chores WHERE done_at IS NOT NULL")
	return done, q.wrap("chores", err)
}
