package queue

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// progressChannel announces changes of tasks that followers can see.
const progressChannel = "otograph_progress"

// Progress is a worker's progress with its task: the stage and the completed
// part of the run, 0 to 1. The next report overwrites it. It is not fenced, and
// is deleted when the claim ends.
type Progress struct {
	TaskID, Stage string
	Fraction      float64
	// Segments are new sentences, First is the number of the first one, and
	// Attempt is the claim's, which fences them. They stay until the task ends.
	Attempt  int64
	First    int
	Segments []spec.Segment
}

// errNotHeld is returned when a task could not be locked for its sentences,
// because it is being changed or the claim has ended.
var errNotHeld = errors.New("the task is locked, or the claim has ended")

// writeSegments runs before any write to workers, because transactions that
// take work back also lock the task first. lock is the locking clause. It
// returns errNotHeld if there is no row to lock. A claim's first sentences
// replace those of earlier claims.
func (p Progress) writeSegments(ctx context.Context, tx *sql.Tx, lock string) error {
	if len(p.Segments) == 0 {
		return nil
	}
	var current int
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM tasks WHERE id = $1 AND attempt = $2 AND phase = 'running'"+lock, p.TaskID, p.Attempt).Scan(&current)
	if found, err := db.Found(err); !found {
		return cmp.Or(err, errNotHeld)
	}
	if p.First == 0 {
		if _, err := tx.ExecContext(ctx, "DELETE FROM live_segments WHERE task_id = $1 AND attempt < $2", p.TaskID, p.Attempt); err != nil {
			return err
		}
	}
	return db.Do(ctx, tx, `INSERT INTO live_segments (task_id, attempt, first, segments) VALUES ($1, $2, $3, $4)
		ON CONFLICT (task_id, attempt, first) DO UPDATE SET segments = excluded.segments`, p.TaskID, p.Attempt, p.First, db.JSON{V: p.Segments})
}

func (p Progress) write(ctx context.Context, tx *sql.Tx, worker string) error {
	return db.Do(ctx, tx, "UPDATE workers SET task_id = $2, stage = $3, fraction = $4 WHERE id = $1", worker, p.TaskID, p.Stage, p.Fraction)
}

// Report writes the progress of a worker's task immediately; its heartbeats
// include it without another transaction (see Member).
func (q *Queue) Report(ctx context.Context, worker string, p Progress) error {
	err := q.config.DB.Write(ctx, func(tx *sql.Tx) error {
		if err := p.writeSegments(ctx, tx, q.config.DB.ForUpdate()); err != nil && !errors.Is(err, errNotHeld) {
			return err
		}
		return p.write(ctx, tx, worker)
	})
	if err == nil {
		q.Changed(ctx)
	}
	return q.wrap("report", err)
}

// Changed notifies the followers of tasks. Call it after the commit.
func (q *Queue) Changed(ctx context.Context) { q.config.DB.Notify(ctx, progressChannel) }

// Changes returns a channel that receives after each Changed, until ctx is
// done. On SQLite it may receive changes of this process only. Changes can be
// lost, so poll occasionally as well.
func (q *Queue) Changes(ctx context.Context) (changes <-chan struct{}, elsewhere bool) {
	return q.config.DB.Subscribe(ctx, progressChannel), q.config.DB.Dialect() == db.Postgres
}
