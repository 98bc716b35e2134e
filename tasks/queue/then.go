package queue

import (
	"context"
	"database/sql"
	"errors"

	"github.com/otograph/otograph/internal/db"
)

// Then claims the next task in the transaction that ends a member's last one, so
// that the two are one commit. It claims nil when others were faster.
type Then func(ctx context.Context, tx *sql.Tx) (*Claim, error)

// ThenNext returns what claims for worker the task whose turn it is, and nil when
// Next has to look itself: nothing waits, the worker drains, or delayed or aged
// tasks are due.
func (q *Queue) ThenNext(ctx context.Context, worker, modelSet string) (Then, error) {
	seen, err := q.look(ctx, worker)
	lane := LaneTasks
	if !seen.tasks {
		lane = LaneBatch
	}
	if err != nil || seen.draining || seen.due || seen.aged || !(seen.tasks || seen.batch) {
		return nil, q.wrap("claim", err)
	}
	claim := q.claimWaiting
	if q.config.DB.Dialect() == db.Postgres {
		claim = q.claimInTurn // what the transaction holds already is no time to wait for others
	}
	return q.then(worker, func(ctx context.Context, tx *sql.Tx, c *Claim) error { return claim(ctx, tx, lane, modelSet, c) }), nil
}

// ThenNextFetch is ThenNext for NextFetch.
func (q *Queue) ThenNextFetch(ctx context.Context, worker string, busy Busy) (Then, error) {
	seen, err := q.lookFetch(ctx, worker, busy)
	if err != nil || seen.closed || seen.due || !seen.waiting {
		return nil, q.wrap("claim download", err)
	}
	return q.then(worker, func(ctx context.Context, tx *sql.Tx, c *Claim) error { return q.claimFetch(ctx, tx, busy, c) }), nil
}

func (q *Queue) then(worker string, claim func(ctx context.Context, tx *sql.Tx, c *Claim) error) Then {
	return func(ctx context.Context, tx *sql.Tx) (*Claim, error) {
		c := Claim{Worker: worker}
		err := claim(ctx, tx, &c)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return &c, err
	}
}
