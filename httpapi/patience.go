package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/tasks"
)

// On the endpoints of OpenAI's interface, a request beyond the account's limits
// waits for a time before it is refused. Before its body is read it waits for
// the account's rate and for other uploads to end, afterwards for a slot among
// the account's tasks.
const (
	usualPatience = 30 * time.Second
	beforeBody    = 1.0 / 3 // of the patience: a body has BodyGrace to begin
	lookAgain     = 100 * time.Millisecond
	// maxImpatient limits the requests that wait for a slot at the same time.
	maxImpatient = 1000
)

// patiently calls try until it no longer fails for the account's limits, or
// patience has passed; then it returns the last error.
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

// beyondLimits reports whether a request was refused for the account's limits.
func beyondLimits(err error) bool {
	var e *apiError
	return errors.Is(err, billing.ErrConcurrencyLimit) || errors.As(err, &e) && e.Code == codeRateLimited
}

// createInTurn creates the task of a request. Requests of an account with too
// many tasks wait in their order.
func (s *Server) createInTurn(ctx context.Context, req tasks.Request) (t tasks.Task, err error) {
	req.Waits = true
	last := billing.ErrConcurrencyLimit // of Create; nothing was created
	waits, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	leave, err := s.places.Enter(waits, req.Account)
	if err == nil {
		defer leave()
		deadline, _ := waits.Deadline()
		err = s.patiently(ctx, time.Until(deadline), func() error {
			t, _, last = s.cfg.Tasks.Create(ctx, req, tasks.Idempotency{})
			return last
		})
	} else {
		err = last
	}
	// After any other error, Create has deleted the audio, or the task may exist.
	if errors.Is(last, billing.ErrConcurrencyLimit) {
		s.cfg.Tasks.DropAudio(context.WithoutCancel(ctx), req.Audio.Key)
	}
	return t, err
}

// patient is private for endpoints whose requests wait for the account's rate.
func (s *Server) patient(h handler) handler {
	return s.privately(func(ctx context.Context, account string) error {
		return s.patiently(ctx, s.patienceBefore(), func() error { return s.takeToken(ctx, account) })
	}, h)
}

// patienceBefore returns how long a request waits before its body is read.
func (s *Server) patienceBefore() time.Duration {
	return time.Duration(beforeBody * float64(s.cfg.Patience))
}
