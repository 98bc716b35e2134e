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
	"errors"
	"log/slog"
	"time"

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
