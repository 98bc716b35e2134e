package tasks

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// HostOf returns the host of a download address in lower case, with its port if
// the address names one; "" if there is none.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// NextFetch claims for worker a task whose audio needs to be downloaded, and
// returns nil if there is none (see queue.Queue.NextFetch).
func (s *Runs) NextFetch(ctx context.Context, worker string, busy queue.Busy) (*Claim, error) {
	var c *Claim
	held, err := s.queue.NextFetch(ctx, worker, busy, func(tx *sql.Tx, held *queue.Claim) (err error) {
		c, err = s.readClaim(ctx, tx, held)
		return err
	})
	if held == nil || err != nil {
		return nil, s.wrap("claim download", err)
	}
	return c, nil
}

// Fetched records the downloaded audio and queues the task for a worker. It may
// be called again after a store error and then finds its earlier writes. If the
// audio's length in seconds is known, its price is held in the same
// transaction; a task that its account cannot pay for fails there. If pricing
// fails, the worker holds the price (see Probed).
func (s *Runs) Fetched(ctx context.Context, c *Claim, audio blob.Info, seconds float64) error {
	var price billing.Money
	if seconds > 0 {
		t, err := s.tariff(ctx, c, seconds)
		if err != nil && Outage(s.Config.DB.Classify(err)) {
			return s.wrap("price of "+c.ID, err)
		}
		if err == nil {
			price = t.quote.Total
		}
	}
	unpaid := false
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		unpaid = false
		r, err := s.guard(ctx, tx, c)
		if r.audio == audio.Key {
			return nil // an earlier call committed this, but its caller got an error
		}
		if err != nil {
			return err
		}
		r.audio, r.lane = audio.Key, laneOf(r.BatchMode)
		if _, err := tx.ExecContext(ctx, "UPDATE tasks SET audio_blob = $2, audio_size = $3, audio_md5 = $4, lane = $5, updated_at = $6 WHERE id = $1",
			c.ID, audio.Key, audio.Size, audio.MD5, r.lane, db.Micros(s.now())); err != nil {
			return err
		}
		if price > 0 {
			var short *UnpaidError
			err := unaffordable(s.billing.Raise(ctx, tx, c.ID, price), seconds)
			if unpaid = errors.As(err, &short); unpaid {
				return s.end(ctx, tx, r, EndPermanent, short.Error())
			}
			if err != nil {
				return err
			}
		}
		return s.queue.Requeue(ctx, tx, r.ref())
	})
	switch {
	case err == nil && unpaid:
		s.Config.Ended(EndPermanent)
		s.sweepTask(ctx, c.ID)
	case err == nil:
		s.queue.Wake(ctx)
	}
	return s.wrap("note audio of "+c.ID, err)
}

// Refetch returns a claimed task to the fetchers because its audio is missing.
func (s *Runs) Refetch(ctx context.Context, c *Claim) error {
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
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
