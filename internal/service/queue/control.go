package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/system/db"
)

// Errors of steering.
var (
	// ErrNoLane is returned for a lane that does not exist.
	ErrNoLane = errors.New("lane does not exist")
	// ErrNoWorker is returned if a name matches no living worker, or more than
	// one.
	ErrNoWorker = errors.New("no such worker")
)

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

// SetDraining stops a worker from claiming further tasks, or lets it claim
// again. It finishes its current task. The worker is identified by its id, or
// by an unambiguous prefix of it. It returns the worker's id.
func (q *Queue) SetDraining(ctx context.Context, worker string, draining bool) (id string, err error) {
	err = q.config.DB.Write(ctx, func(tx *sql.Tx) error {
		ids, err := db.Column[string](ctx, tx, "SELECT id FROM workers WHERE kind = $1 ORDER BY id", string(Worker))
		if err != nil {
			return err
		}
		if id, err = oneOf(ids, worker); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE workers SET draining = $2 WHERE id = $1", id, draining)
		return err
	})
	if err == nil && !draining {
		q.Wake(ctx)
	}
	return id, q.wrap("drain", err)
}

func oneOf(ids []string, name string) (string, error) {
	var found []string
	for _, id := range ids {
		if id == name {
			return id, nil
		}
		if name != "" && strings.HasPrefix(id, name) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("%w: %.40q", ErrNoWorker, name)
	}
	return "", fmt.Errorf("%w: %.40q begins the ids of %d workers", ErrNoWorker, name, len(found))
}
