// Package queue decides which task runs next and who runs it.
//
// The tasks table is the queue, on PostgreSQL and on SQLite: a row in the phase
// "queued" waits for a worker, one in the phase "running" belongs to the worker
// that it names. A claim gives a worker a task under a fencing number (attempt)
// that rises with every claim; what the worker writes later counts only while
// that number is current. Processes that hold work keep a heartbeat row, and a
// Watch finds those that died.
package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/otograph/otograph/internal/db"
)

// Lanes of the queue: the batch lane waits for the tasks lane. The fetch lane is
// the fetchers': a task waits there until its audio has been downloaded.
const (
	LaneFetch = "fetch"
	LaneTasks = "tasks"
	LaneBatch = "batch"
)

// ErrSuperseded is returned for a claim that is over: the task was given to
// another worker, has ended, or is gone.
var ErrSuperseded = errors.New("claim is superseded")

// Config holds a Queue's dependencies and policy. All fields are required.
type Config struct {
	DB        *db.DB // migrated
	Clock     func() time.Time
	Logger    *slog.Logger
	BatchWait time.Duration // a batch task that waited this long goes before the tasks lane
	Horizon   time.Duration // the longest that a task is ever delayed
}

// Queue is the queue of tasks in one database. It is safe for concurrent use,
// by any number of processes.
type Queue struct{ config Config }

// New returns the queue in a migrated database.
func New(c Config) *Queue { return &Queue{config: c} }

func (q *Queue) now() time.Time { return db.Time(db.Micros(q.config.Clock())) }

func (q *Queue) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("queue: %s: %w", what, q.config.DB.Classify(err))
}
