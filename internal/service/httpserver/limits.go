package httpserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/tasks"
)

// admit refuses a body with audio before a byte of it is read: if its announced
// size exceeds max, if the account cannot pay for the shortest task, or sends
// too much at once. The caller calls leave after reading the body.
func (s *Server) admit(r *request, max int64) (leave func(), err error) {
	size := r.ContentLength
	if size > max {
		return nil, tooLarge(max)
	}
	if size >= 0 && size <= maxSmallBody {
		return func() {}, nil
	}
	// A used idempotency key gets its first response regardless of the balance.
	if err := s.cfg.Tasks.Admit(r.Context(), r.who.Account, r.Header.Get("Idempotency-Key")); err != nil {
		return nil, err
	}
	if leave, err = s.uploads.Enter(r.Context(), r.who.Account); errors.Is(err, fairuse.ErrFull) {
		return nil, rateLimited(1, "too many concurrent uploads for this account: wait for one to finish")
	}
	return leave, err
}

// On the endpoints of OpenAI's interface, a request beyond the account's limits
// waits for a time before it is refused: before its body is read, for the
// account's rate and other uploads; afterwards, for a slot among the tasks.
const (
	defaultLimitWait = 30 * time.Second
	shareBeforeBody  = 1.0 / 3 // of the wait: a body has BodyGrace to begin
	retryInterval    = 100 * time.Millisecond
	// maxLimitWaits limits the requests that wait for a slot at the same time.
	maxLimitWaits = 1000
)

// untilAllowed calls try until its error is not one of the account's limits, or
// limit has passed, and returns the last error.
func (s *Server) untilAllowed(ctx context.Context, limit time.Duration, try func() error) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		err := try()
		refused, ok := errors.AsType[*apiError](err)
		if !errors.Is(err, billing.ErrConcurrencyLimit) && !(ok && refused.Code == codeRateLimited) {
			return err
		}
		select {
		case <-timer.C:
			return err
		case <-s.draining.Done():
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retryInterval):
		}
	}
}

// admitInTurn is like admit, for endpoints whose requests wait for their turn.
func (s *Server) admitInTurn(r *request) (leave func(), err error) {
	err = s.untilAllowed(r.Context(), s.waitBeforeBody(), func() (err error) {
		leave, err = s.admit(r, maxUploadBody)
		return err
	})
	return leave, err
}

// createInOrder creates the task of a request. Requests of an account with too
// many tasks wait in their order.
func (s *Server) createInOrder(ctx context.Context, req tasks.Request) (t tasks.Task, err error) {
	req.Waits = true
	last := billing.ErrConcurrencyLimit // the last error of Create
	waits, cancel := context.WithTimeout(ctx, s.cfg.LimitWait)
	defer cancel()
	leave, err := s.places.Enter(waits, req.Account)
	if err == nil {
		defer leave()
		deadline, _ := waits.Deadline()
		err = s.untilAllowed(ctx, time.Until(deadline), func() error {
			t, _, last = s.cfg.Tasks.Create(ctx, req, tasks.Idempotency{})
			return last
		})
	} else {
		err = last
	}
	// After other errors, Create deleted the audio, or the task may exist.
	if errors.Is(last, billing.ErrConcurrencyLimit) {
		s.cfg.Tasks.DropAudio(context.WithoutCancel(ctx), req.Audio.Key)
	}
	return t, err
}

// waiting is like private, but a request beyond the account's rate waits.
func (s *Server) waiting(h handler) handler {
	return s.privately(func(ctx context.Context, account string) error {
		return s.untilAllowed(ctx, s.waitBeforeBody(), func() error { return s.takeToken(ctx, account) })
	}, h)
}

// waitBeforeBody returns how long a request waits before its body is read.
func (s *Server) waitBeforeBody() time.Duration {
	return time.Duration(shareBeforeBody * float64(s.cfg.LimitWait))
}

// maxCached limits the values of a cache.
const maxCached = 100_000

// cache holds loaded values for a time.
type cache[V any] struct {
	age     time.Duration
	load    func(ctx context.Context, key string) (V, error)
	now     func() time.Time
	mu      sync.Mutex
	entries map[string]cached[V]
}

type cached[V any] struct {
	value V
	at    time.Time
}

func newCache[V any](age time.Duration, load func(ctx context.Context, key string) (V, error)) *cache[V] {
	return &cache[V]{age: age, load: load, now: time.Now, entries: map[string]cached[V]{}}
}

func (c *cache[V]) get(ctx context.Context, key string) (V, error) {
	c.mu.Lock()
	k, ok := c.entries[key]
	c.mu.Unlock()
	if age := c.now().Sub(k.at); ok && age >= 0 && age < c.age {
		return k.value, nil
	}
	value, err := c.load(ctx, key)
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxCached {
		clear(c.entries)
	}
	c.entries[key] = cached[V]{value, c.now()}
	return value, nil
}
