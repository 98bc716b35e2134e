package tasks

import (
	"context"
	"database/sql"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// lostSession is the error of a live session whose server died.
const lostSession = "the server of the live session was lost; nothing is charged"

// OpenLive creates the task of a live session, which runs from the start, held
// by a member, with a hold for r.Seconds. No worker claims it, and it is never
// retried. Errors are those of Create.
func (s *Runs) OpenLive(ctx context.Context, r Request, member string) (*Claim, error) {
	r.Extras.Live = true
	var c *Claim
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		prices, sets, err := s.terms(ctx, tx, 0)
		if err != nil {
			return err
		}
		t, err := s.insert(ctx, tx, r, "", prices, sets)
		if err != nil {
			return err
		}
		c = &Claim{Task: t, price: prices.ID, Held: &queue.Claim{TaskID: t.ID, AccountID: t.AccountID, Lane: queue.LaneTasks, Worker: member, Attempt: 1}}
		return db.Do(ctx, tx, "UPDATE tasks SET phase = 'running', attempt = 1, worker_id = $2, claimed_at = $3 WHERE id = $1", t.ID, member, db.Micros(s.now()))
	})
	if err != nil {
		return nil, s.wrap("open live session", err)
	}
	s.Config.Logger.InfoContext(ctx, "live session begins", "task", c.ID, "account", c.AccountID)
	return c, nil
}

// Delivered returns the outcome of a live session whose process died: the
// sentences that its client got, at the price of the cheapest tier that may
// have run.
func (s *Runs) Delivered(ctx context.Context, c *Claim, segments []spec.Segment) (o Outcome, err error) {
	for _, seg := range segments {
		o.Seconds = max(o.Seconds, seg.End)
	}
	o.Result = spec.Result{AudioDuration: o.Seconds, Segments: segments, Ran: spec.Capabilities{ASR: true}, Stats: spec.Stats{Truncated: true}}
	if c.Options.ASRLanguage != nil {
		o.Result.Language, _ = spec.NormalizeLanguage(*c.Options.ASRLanguage)
	}
	prices, sets, err := s.terms(ctx, s.Config.DB.Read(), c.price)
	o.Tier = cheapest(prices, possibleTiers(c.Options, stillNaming(c.Extras.Model, sets)))
	return o, s.wrap("price of "+c.ID, err)
}
