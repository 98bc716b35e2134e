package service

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A load balancer asks often. The database and the file store are checked less
// often, and a hanging check does not delay the response.
const (
	readyAge   = time.Second
	readyLimit = 2 * time.Second
)

// readiness reports whether all dependencies of requests work. It is safe for
// concurrent use: callers share the result of the last second.
type readiness struct {
	checks map[string]func(context.Context) error
	turn   chan struct{} // holds one value while no check runs
	at     time.Time
	err    error
}

func newReadiness(checks map[string]func(context.Context) error) *readiness {
	r := &readiness{checks: checks, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// check returns nil if every check passed within readyLimit, otherwise an error
// that names the failed checks.
func (r *readiness) check(ctx context.Context) error {
	select {
	case <-r.turn:
		defer func() { r.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !r.at.IsZero() && time.Since(r.at) < readyAge {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyLimit)
	defer cancel()
	answers := map[string]chan error{}
	for name, ask := range r.checks {
		answer := make(chan error, 1)
		answers[name] = answer
		go func() { answer <- ask(ctx) }()
	}
	r.err = nil
	for name, answer := range answers {
		var err error
		select {
		case err = <-answer:
		case <-ctx.Done():
			select {
			case err = <-answer: // it came while another check hung
			default:
				err = fmt.Errorf("no response within %s", readyLimit)
			}
		}
		if err != nil {
			r.err = errors.Join(r.err, fmt.Errorf("%s: %w", name, err))
		}
	}
	r.at = time.Now()
	return r.err
}
