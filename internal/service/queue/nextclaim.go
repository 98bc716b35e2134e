package queue

import (
	"context"
	"database/sql"

	"github.com/otograph/otograph/internal/system/db"
)

// NextClaim claims the next task in the transaction that ends a member's
// previous one, so that both are one commit. It returns nil if others were
// faster.
type NextClaim func(ctx context.Context, tx *sql.Tx) (*Claim, error)

// NextTaskClaim returns the NextClaim of worker's next task. It returns nil if
// the caller must use Next instead: no task waits, the worker drains, or
// delayed or aged tasks are due.
func (q *Queue) NextTaskClaim(ctx context.Context, worker, modelSet string) (NextClaim, error) {
	seen, err := q.look(ctx, worker)
	if err != nil || seen.draining || seen.due || seen.aged || !(seen.tasks || seen.batch) {
		return nil, q.wrap("claim", err)
	}
	// The first way waits for no lock on PostgreSQL, because the transaction
	// already holds locks.
	return q.nextClaim(worker, q.ways(seen, modelSet)[0]), nil
}

// NextFetchClaim is NextTaskClaim for NextFetch. queues reports that the
// transaction itself queues a download, so that there may be one to claim even
// if none waits now.
func (q *Queue) NextFetchClaim(ctx context.Context, worker string, busy Busy, queues bool) (NextClaim, error) {
	seen, err := q.lookFetch(ctx, worker, busy)
	if err != nil || seen.closed || seen.due || !(seen.waiting || queues) {
		return nil, q.wrap("claim download", err)
	}
	return q.nextClaim(worker, q.fetchWay(busy)), nil
}

// claimFunc claims a task for c.Worker and names it in c; the error is
// sql.ErrNoRows if there is none.
type claimFunc func(ctx context.Context, tx *sql.Tx, c *Claim) error

func (q *Queue) nextClaim(worker string, claim claimFunc) NextClaim {
	return func(ctx context.Context, tx *sql.Tx) (*Claim, error) {
		c := Claim{Worker: worker}
		if found, err := db.Found(claim(ctx, tx, &c)); !found {
			return nil, err
		}
		return &c, nil
	}
}

// first claims for worker in the first of the ways that finds a task, each in a
// transaction that read must also accept. It returns nil if none does.
func (q *Queue) first(ctx context.Context, worker string, ways []claimFunc, read func(tx *sql.Tx, c *Claim) error) (*Claim, error) {
	for _, way := range ways {
		var c *Claim
		err := q.config.DB.Write(ctx, func(tx *sql.Tx) (err error) {
			if c, err = q.nextClaim(worker, way)(ctx, tx); c == nil || err != nil {
				return err
			}
			return read(tx, c)
		})
		if c != nil || err != nil {
			return c, err
		}
	}
	return nil, nil
}
