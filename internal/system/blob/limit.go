package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// limits bound an operation, which otherwise fails with ErrUnavailable. They do
// not apply to folders, because their system calls can't be interrupted.
type limits struct {
	answer   time.Duration // for operations without data
	transfer time.Duration // for one Write, one Read, or a Commit
}

// The time for a part of 5 MiB requires 2 Mbit/s.
var defaultLimits = limits{answer: 10 * time.Second, transfer: 20 * time.Second}

// Observe makes the store call observe after every create, commit, open and
// delete with its duration and outcome; a missing file is no failure. It must
// be called before the store is used.
func (s *Store) Observe(observe func(op string, took time.Duration, err error)) { s.observe = observe }

// errSlow is the cause of a context that a guard canceled.
var errSlow = errors.New("no response in time")

// guard limits the operations of a file that stays open.
type guard struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newGuard(ctx context.Context) guard {
	ctx, cancel := context.WithCancelCause(ctx)
	return guard{ctx, cancel}
}

// within runs op and cancels the guard's context if op takes longer than limit.
func (g guard) within(limit time.Duration, op func() error) error {
	timer := time.AfterFunc(limit, func() { g.cancel(errSlow) })
	err := op()
	timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(g.ctx), errSlow) {
		return fmt.Errorf("%w: no answer within %s", ErrUnavailable, limit)
	}
	return err
}

// timed is within for an operation on a file, and calls the observer.
func (s *Store) timed(g guard, op, key string, limit time.Duration, work func() error) error {
	if err := s.fault(op, key); err != nil {
		return s.wrap(op, key, err)
	}
	begun := time.Now()
	err := g.within(limit, work)
	outcome := classify(err)
	if errors.Is(outcome, context.Canceled) || errors.Is(outcome, ErrNotFound) {
		outcome = nil
	}
	s.observe(op, time.Since(begun), outcome)
	return s.wrap(op, key, err)
}
