package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Error messages of canceled tasks.
const (
	canceledMessage  = "canceled by the operator of the service"
	withdrawnMessage = "canceled by its owner"
	leftMessage      = "canceled because its client went away"
)

// ErrTextDelivered is returned for a task that its owner can no longer cancel:
// part of its text has been delivered, which must be charged.
var ErrTextDelivered = errors.New("part of the text has been delivered")

// Cancel ends a task that is not final, whether it waits or runs. The task
// becomes StatusFailed and final, its hold is released, nothing is charged, and
// its callback is sent as for any failed task. A worker that runs the task
// drops it at its next heartbeat; until then its writes are refused. Errors
// wrap ErrNotFound or ErrFinal.
//
// Cancel is for operators and checks no account.
func (s *Operators) Cancel(ctx context.Context, id string) (Task, error) {
	return s.cancel(ctx, "", id, canceledMessage, func(*sql.Tx, *row) error { return nil })
}

// Withdraw cancels a task for its owner, as long as no sentence has been
// reported, and never a live session. Errors wrap ErrNotFound, ErrFinal, ErrForbidden or ErrTextDelivered.
func (s *Owners) Withdraw(ctx context.Context, account, id string) (Task, error) {
	return s.cancel(ctx, account, id, withdrawnMessage, func(tx *sql.Tx, r *row) error {
		var delivered int
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM live_segments WHERE task_id = $1", id).Scan(&delivered)
		if err == nil && (delivered > 0 || r.Extras.Live) {
			err = fmt.Errorf("%w: %s", ErrTextDelivered, id)
		}
		return err
	})
}

// Leave cancels a task whose client went away and had requested this. Audio up
// to the last reported sentence is charged, at the price of the cheapest tier
// that may have run. Errors wrap ErrNotFound, ErrFinal or ErrForbidden.
func (s *Owners) Leave(ctx context.Context, account, id string) (Task, error) {
	return s.cancel(ctx, account, id, leftMessage, func(tx *sql.Tx, r *row) error {
		if r.Final() {
			return nil // cancel refuses it
		}
		reported, err := db.Select(ctx, tx, func(row db.Row, segments *[]spec.Segment) error { return row.Scan(db.ScanJSON(segments)) },
			"SELECT segments FROM live_segments WHERE task_id = $1", id)
		if err != nil || len(reported) == 0 {
			return err
		}
		seconds := 0.0
		for _, segment := range slices.Concat(reported...) {
			seconds = max(seconds, segment.End)
		}
		prices, sets, err := s.terms(ctx, tx, r.price)
		if err != nil {
			return err
		}
		u := usage(r.Task, seconds)
		u.Mode = cheapest(prices, possibleTiers(r.Options, stillNaming(r.Extras.Model, sets)))
		quote, err := prices.Quote(u)
		if err != nil {
			return err
		}
		_, err = s.charge(ctx, tx, r, quote, seconds)
		return err
	})
}

func cheapest(prices billing.Prices, tiers []spec.Tier) spec.Tier {
	if prices.Optimized < prices.Standard && slices.Contains(tiers, spec.TierOptimized) {
		return spec.TierOptimized
	}
	return tiers[0]
}

// cancel ends a task of an account ("" for any) that is not final, unless first
// returns an error.
func (s *core) cancel(ctx context.Context, account, id, message string, first func(*sql.Tx, *row) error) (Task, error) {
	t, err := s.change(ctx, "cancel", id, func(tx *sql.Tx, r row) error {
		if account != "" && r.AccountID != account {
			return fmt.Errorf("%w: %s", ErrForbidden, id)
		}
		if err := first(tx, &r); err != nil {
			return err
		}
		if r.Final() {
			return fmt.Errorf("%w: %s is %s", ErrFinal, id, r.Status)
		}
		if r.phase == "queued" {
			if err := s.queue.Withdrawn(ctx, tx, r.ref()); err != nil {
				return err
			}
		}
		return s.finalize(ctx, tx, r, StatusFailed, message)
	})
	if err == nil {
		s.sweepTask(ctx, id)
	}
	return t, err
}

// change runs do on a task, which it locks, and returns the changed task.
func (s *core) change(ctx context.Context, what, id string, do func(tx *sql.Tx, r row) error) (t Task, err error) {
	err = s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.lockNamed(ctx, tx, id)
		if err == nil {
			err = do(tx, r)
		}
		if err == nil {
			t, err = scanTask(tx.QueryRowContext(ctx, "SELECT "+taskColumns+" FROM tasks WHERE id = $1", id))
		}
		return err
	})
	return t, s.wrap(what, err)
}

// Delete removes a task with its audio, result, checkpoints and callback. If
// the task waits for a retry, the retry is canceled and the hold is released.
// Ledger entries stay. Errors wrap ErrNotFound, ErrForbidden or ErrProcessing.
func (s *Owners) Delete(ctx context.Context, account, id string) error {
	var pending []string
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		pending = nil
		r, err := s.lockNamed(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case r.AccountID != account:
			return fmt.Errorf("%w: %s", ErrForbidden, id)
		case r.Status == StatusProcessing:
			return fmt.Errorf("%w: %s", ErrProcessing, id)
		}
		if err := s.billing.Release(ctx, tx, id); err != nil {
			return err
		}
		if r.phase == "queued" { // for its retry
			if err := s.queue.Withdrawn(ctx, tx, r.ref()); err != nil {
				return err
			}
		}
		pending, err = s.remove(ctx, tx, r)
		return err
	})
	if err != nil {
		return s.wrap("delete", err)
	}
	s.queue.Changed(ctx)
	s.Config.Logger.InfoContext(ctx, "task deleted", "task", id, "account", account)
	if err := s.erase(context.WithoutCancel(ctx), pending); err != nil {
		s.Config.Logger.WarnContext(ctx, "files of a deleted task stay until the clean-up", "task", id, "error", err)
	}
	return nil
}
