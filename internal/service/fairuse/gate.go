// Package fairuse keeps one client of a server from starving the others: it
// determines a client's address, even through trusted proxies, limits the
// connections of a listener, and shares places among accounts or addresses.
package fairuse

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrFull is returned if the maximum number of callers is already waiting.
var ErrFull = errors.New("too many callers are waiting")

// Gate shares a limited number of places among many callers, so that none of
// them can take them all: callers belong to keys (an account, an address), and
// free places are given to the keys in turn. It is safe for concurrent use.
type Gate struct {
	places, perKey, maxWaiting int

	mu             sync.Mutex
	taken, waiting int
	keys           map[string]*queue
	ring           []*queue // keys with waiting callers, next first
}

// queue is one key's share of the gate.
type queue struct {
	key     string
	taken   int
	waiting []chan struct{}
}

// NewGate returns a gate with the given places, of which one key may hold at
// most perKey, and for which at most maxWaiting callers wait. Numbers below 1
// count as 1, and maxWaiting below 0 as 0.
func NewGate(places, perKey, maxWaiting int) *Gate {
	return &Gate{places: max(1, places), perKey: max(1, perKey), maxWaiting: max(0, maxWaiting), keys: map[string]*queue{}}
}

// Enter waits for a place for key. The caller frees it by calling leave, which
// may be called more than once. The error is ErrFull, or the cause of ctx.
func (g *Gate) Enter(ctx context.Context, key string) (leave func(), err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	g.mu.Lock()
	q := g.keys[key]
	if q == nil {
		q = &queue{key: key}
		g.keys[key] = q
	}
	if g.taken < g.places && q.taken < g.perKey && len(q.waiting) == 0 {
		g.taken++
		q.taken++
		g.mu.Unlock()
		return g.leaver(q), nil
	}
	if g.waiting >= g.maxWaiting {
		g.forget(q)
		g.mu.Unlock()
		return nil, ErrFull
	}
	called := make(chan struct{})
	if len(q.waiting) == 0 {
		g.ring = append(g.ring, q)
	}
	q.waiting = append(q.waiting, called)
	g.waiting++
	g.mu.Unlock()
	select {
	case <-called:
		return g.leaver(q), nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(q.waiting, called); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		g.waiting--
		g.trim(q)
		return nil, context.Cause(ctx)
	}
	// A place was assigned at the same moment: pass it to the next caller.
	g.give(q)
	return nil, context.Cause(ctx)
}

func (g *Gate) leaver(q *queue) func() {
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.give(q)
	})
}

// give takes a place back from q and gives it to the next caller.
func (g *Gate) give(q *queue) {
	g.taken--
	q.taken--
	g.forget(q)
	for tries := len(g.ring); tries > 0 && g.taken < g.places; tries-- {
		next := g.ring[0]
		g.ring = append(g.ring[1:], next)
		if next.taken >= g.perKey {
			continue
		}
		g.taken++
		next.taken++
		called := next.waiting[0]
		next.waiting = next.waiting[1:]
		g.waiting--
		g.trim(next)
		close(called)
	}
}

// trim removes a queue without waiting callers from the ring.
func (g *Gate) trim(q *queue) {
	if len(q.waiting) > 0 {
		return
	}
	if i := slices.Index(g.ring, q); i >= 0 {
		g.ring = slices.Delete(g.ring, i, i+1)
	}
	g.forget(q)
}

// forget removes a key that neither holds nor waits for a place.
func (g *Gate) forget(q *queue) {
	if q.taken == 0 && len(q.waiting) == 0 {
		delete(g.keys, q.key)
	}
}
