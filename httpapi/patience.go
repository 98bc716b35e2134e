package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/tasks"
)

// How long a request on an endpoint of OpenAI's interface waits for its turn beyond the
// account's limits before it is refused: for a place among the account's tasks, and, with
// its body still to come, for its rate and for its other uploads to end.
const (
	usualPatience = 30 * time.Second
	beforeBody    = 1.0 / 3 // of the patience: a body has BodyGrace to begin
	lookAgain     = 100 * time.Millisecond
	// maxImpatient bounds the requests that wait for a place at the same time.
	maxImpatient = 1000
)

// patiently calls try until it does not refuse the account for its limits, or the
// patience ends; then the last refusal counts.
func (s *Server) patiently(ctx context.Context, patience time.Duration, try func() error) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		err := try()
		if !beyondLimits(err) {
			return err
		}
		select {
		case <-timer.C:
			return err
		case <-s.draining:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookAgain):
		}
	}
}

// beyondLimits reports whether a request was refused for what the account does already.
func beyondLimits(err error) bool {
	var e *apiError
	return errors.Is(err, billing.ErrConcurrencyLimit) || errors.As(err, &e) && e.Code == codeRateLimited
}

// createInTurn creates the task of a request. Those of an account that has too many tasks
// wait in their order.
func (s *Server) createInTurn(ctx context.Context, req tasks.Request) (t tasks.Task, err error) {
	req.Waits = true
	err = billing.ErrConcurrencyLimit
	waits, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	if leave, turn := s.places.Enter(waits, req.Account); turn == nil {
		defer leave()
		deadline, _ := waits.Deadline()
		err = s.patiently(ctx, time.Until(deadline), func() error {
			t, _, err = s.cfg.Tasks.Create(ctx, req, tasks.Idempotency{})
			return err
		})
	}
	if errors.Is(err, billing.ErrConcurrencyLimit) || ctx.Err() != nil && err != nil {
		s.cfg.Tasks.DropAudio(context.WithoutCancel(ctx), req.Audio.Key)
	}
	return t, err
}

// patient is private, for endpoints whose requests wait for the account's rate.
func (s *Server) patient(h handler) handler {
	return s.privately(func(ctx context.Context, account string) error {
		return s.patiently(ctx, s.patienceBefore(), func() error { return s.takeToken(ctx, account) })
	}, h)
}

// patienceBefore is how long a request waits whose body is still to come.
func (s *Server) patienceBefore() time.Duration {
	return time.Duration(beforeBody * float64(s.cfg.Patience))
}
