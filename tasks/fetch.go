package tasks

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/tasks/queue"
)

// HostOf returns the host that a download from address asks, with its port if
// the address names one, in lower case; "" if there is none.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// NextFetch claims for worker a task whose audio is to be downloaded, and
// returns nil when there is none (see queue.Queue.NextFetch).
func (s *Service) NextFetch(ctx context.Context, worker string, busy queue.Busy) (*Claim, error) {
	var c Claim
	held, err := s.queue.NextFetch(ctx, worker, busy, func(tx *sql.Tx, held *queue.Claim) (err error) {
		c, err = readClaim(ctx, tx, held)
		return err
	})
	if held == nil || err != nil {
		return nil, s.wrap("claim download", err)
	}
	c.Held = held
	return &c, nil
}

// Fetched records the audio that was downloaded and queues the task for a
// worker. It may be called again after an error of the store, and then finds
// what it had done.
func (s *Service) Fetched(ctx context.Context, c *Claim, key string, size int64, md5 string) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.lockTask(ctx, tx, c.ID)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return queue.ErrSuperseded
		case err != nil:
			return err
		case r.audio == key:
			return nil // an earlier call did it and did not hear of it
		case !r.current(c):
			return queue.ErrSuperseded
		}
		lane := laneOf(r.BatchMode)
		if _, err := tx.ExecContext(ctx, "UPDATE tasks SET audio_blob = $2, audio_size = $3, audio_md5 = $4, lane = $5, updated_at = $6 WHERE id = $1",
			c.ID, key, size, md5, lane, db.Micros(s.now())); err != nil {
			return err
		}
		return s.queue.Requeue(ctx, tx, queue.Ref{TaskID: r.ID, AccountID: r.AccountID, Lane: lane})
	})
	if err == nil {
		s.queue.Wake(ctx)
	}
	return s.wrap("note audio of "+c.ID, err)
}

// Refetch hands a claimed task whose audio is not there, or not any more, to
// the fetchers.
func (s *Service) Refetch(ctx context.Context, c *Claim) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.guard(ctx, tx, c)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE tasks SET audio_blob = NULL, lane = $2 WHERE id = $1", r.ID, queue.LaneFetch); err != nil {
			return err
		}
		return s.queue.Requeue(ctx, tx, queue.Ref{TaskID: r.ID, AccountID: r.AccountID, Lane: queue.LaneFetch})
	})
	if err == nil {
		s.queue.Wake(ctx)
	}
	return s.wrap("download audio of "+c.ID+" again", err)
}
