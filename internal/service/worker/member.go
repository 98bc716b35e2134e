package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

const (
	// shortestIdle is the shortest time between two checks of an empty queue.
	shortestIdle = 20 * time.Millisecond
	// lastWrite limits writing an attempt's end when the member itself ends.
	lastWrite = 20 * time.Second
)

// defaultPoll returns the longest time between checks of an empty queue. On
// SQLite, other processes cannot wake this one on every system.
func defaultPoll(s *tasks.Runs) time.Duration {
	if s.Config.DB.Dialect() == db.Postgres {
		return 5 * time.Second
	}
	return 250 * time.Millisecond
}

// idle waits until there may be a task to claim: for a wake-up, a free slot,
// the end of the first delay, or at most poll.
func idle(ctx context.Context, s *tasks.Runs, poll time.Duration, wake, freed <-chan struct{}) {
	if at, ok, err := s.Queue().NextDue(ctx); err == nil && ok {
		poll = min(poll, max(at.Sub(s.Config.Clock()), shortestIdle))
	}
	backoff.Wait(ctx, poll, wake, freed)
}

// public reports whether the text of an attempt's error is about the customer's
// input or a limit. Any other text may name files and hosts of this machine.
func public(err error) bool {
	return spec.IsPermanent(err) || errors.Is(err, spec.ErrSlow) || errors.Is(err, errFetchLimit) || errors.As(err, new(sourceError))
}

// messageOf returns the error message of a task whose attempt failed with err.
func messageOf(err error) string {
	if unpaid, ok := errors.AsType[*tasks.UnpaidError](err); ok {
		return unpaid.Error()
	}
	if stalled, ok := errors.AsType[stallError](err); ok {
		return stalled.Error()
	}
	switch part := partOf(err, ""); {
	case public(err):
		return err.Error()
	case part != "":
		return fmt.Sprintf("a failure of the service's %s", part)
	}
	return "internal error"
}

// endOf returns the ending of an attempt that failed with err, and its message;
// cause is the cause of its context.
func endOf(err, cause error) (how tasks.Ending, message string) {
	switch message = messageOf(err); {
	case errors.Is(cause, queue.ErrDraining):
		return tasks.EndHandedBack, cause.Error()
	case errors.As(err, new(stallError)):
		return tasks.EndRecoverable, message
	case errors.Is(cause, errTimeout):
		return tasks.EndRecoverable, fmt.Sprintf("the attempt %v of %s", errTimeout, taskTimeout)
	case partOf(err, "") != "":
		return tasks.EndOutage, message
	case spec.IsPermanent(err):
		return tasks.EndPermanent, message
	case errors.As(err, new(enginePanic)):
		return tasks.EndCrash, message
	}
	return tasks.EndRecoverable, message
}

// release records the end of an attempt even if run is done. It retries after
// each outage until patience has passed; 0 means forever. For a claim that is
// no longer current it returns nil, because its new owner records the end.
func release(run context.Context, s *tasks.Runs, c *tasks.Claim, how tasks.Ending, message string, patience time.Duration) error {
	ctx := context.WithoutCancel(run)
	if patience > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, patience)
		defer done()
	}
	err := backoff.Retry(ctx, tasks.Outage, func(ctx context.Context) error { return s.Release(ctx, c, how, message) })
	if errors.Is(err, queue.ErrSuperseded) {
		return nil
	}
	return err
}
