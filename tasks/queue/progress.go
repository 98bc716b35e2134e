package queue

import (
	"context"
	"database/sql"

	"github.com/otograph/otograph/internal/db"
)

// progressChannel is notified when a task has changed in a way that its
// followers see.
const progressChannel = "otograph_progress"

// Progress is how far a worker is with its task: the stage and how much of the run
// is done, 0 to 1. It is a hint, overwritten by the next one, and is neither fenced
// nor kept when the claim ends.
type Progress struct {
	TaskID   string
	Stage    string
	Fraction float64
}

func (p Progress) write(ctx context.Context, tx *sql.Tx, worker string) error {
	_, err := tx.ExecContext(ctx, "UPDATE workers SET task_id = $2, stage = $3, fraction = $4 WHERE id = $1", worker, p.TaskID, p.Stage, p.Fraction)
	return err
}

// Report writes the progress of a worker's task at once; its heartbeats write it
// without a transaction of its own (see Member).
func (q *Queue) Report(ctx context.Context, worker string, p Progress) error {
	err := q.config.DB.Write(ctx, func(tx *sql.Tx) error { return p.write(ctx, tx, worker) })
	if err == nil {
		q.Changed(ctx)
	}
	return q.wrap("report", err)
}

// Changed tells those who follow tasks that one has changed. Call it after the
// commit.
func (q *Queue) Changed(ctx context.Context) { q.config.DB.Notify(ctx, progressChannel) }

// Changes returns a channel that receives after each Changed, until ctx is done.
// On SQLite it hears of this process alone; on both, changes can be lost: look
// now and then, too.
func (q *Queue) Changes(ctx context.Context) (changes <-chan struct{}, elsewhere bool) {
	return q.config.DB.Subscribe(ctx, progressChannel), q.config.DB.Dialect() == db.Postgres
}
