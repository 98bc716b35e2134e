package worker

import (
	"context"
	"errors"
	"time"

	"github.com/otograph/otograph/internal/backoff"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/internal/tasks/queue"
)

const (
	// shortestIdle is the shortest time between two looks at an empty queue.
	shortestIdle = 20 * time.Millisecond
	// lastWrite is how long the end of an attempt may take to be written by a
	// member that ends.
	lastWrite = 20 * time.Second
)

// idle waits until there may be something to claim: a wake-up, a free place, the
// end of the first delay, or poll.
func idle(ctx context.Context, s *tasks.Service, poll time.Duration, wake, freed <-chan struct{}) {
	if at, ok, err := s.Queue().NextDue(ctx); err == nil && ok {
		poll = min(poll, max(at.Sub(s.Clock()), shortestIdle))
	}
	backoff.Wait(ctx, poll, wake, freed)
}

// release writes the end of an attempt even though run is over, and again after
// each outage until patience has passed; 0 is without end. The error is nil for a claim
// that is no longer current: others write its end.
func release(run context.Context, s *tasks.Service, c *tasks.Claim, how tasks.Ending, message string, patience time.Duration) error {
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
