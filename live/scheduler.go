package live

import (
	"cmp"
	"slices"
	"sync"

	"github.com/otograph/otograph"
)

// priority orders the kinds of work; lower numbers come first.
type priority int

const (
	finals priority = iota
	sounds
	partials
	priorities
)

// scheduler computes the work of all sessions of a pipeline: finals before
// sounds before partials, and among the sessions first the one that has waited
// longest since its last work. One piece of work is one call of a model;
// sessions do not share a pass of a decoder.
type scheduler struct {
	cores   int // also the maximum number of workers
	users   int // sessions; registry is held
	mu      sync.Mutex
	running int
	turn    int // counts the pieces of work
	waiting []*client
}

// client is a session's place in a scheduler.
type client struct {
	s      *scheduler
	queues [priorities][]task
	busy   [priorities]bool // the first of the queue runs
	last   int              // the value of turn at its last piece of work
	work   sync.WaitGroup
}

// task is a piece of work on sound that ends at a sample. Its argument is the
// number of cores that it may use.
type task struct {
	end int
	run func(cores int)
}

// The schedulers of the pipelines that have sessions.
var (
	registry   sync.Mutex
	schedulers = map[*otograph.Pipeline]*scheduler{}
)

// join returns a place in the scheduler of a pipeline.
func join(p *otograph.Pipeline, cores int) (*client, func()) {
	registry.Lock()
	defer registry.Unlock()
	s := cmp.Or(schedulers[p], &scheduler{cores: max(cores, 1)})
	schedulers[p] = s
	s.users++
	return &client{s: s}, func() {
		registry.Lock()
		defer registry.Unlock()
		if s.users--; s.users == 0 {
			delete(schedulers, p)
		}
	}
}

// do queues work of a kind; pieces of one kind run one after the other.
func (c *client) do(p priority, t task) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.idle() {
		c.s.waiting = append(c.s.waiting, c)
	}
	c.queues[p] = append(c.queues[p], t)
	c.work.Add(1)
	if c.s.running < c.s.cores {
		c.s.running++
		go c.s.run()
	}
}

// pending reports whether work of a kind waits or runs.
func (c *client) pending(p priority) bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return len(c.queues[p]) > 0
}

// free reports whether no work runs, of any session.
func (c *client) free() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.running == 0
}

// done returns the sample up to which all finals and sounds are done; at most at.
func (c *client) done(at int) int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, q := range c.queues[:partials] {
		if len(q) > 0 {
			at = min(at, q[0].end)
		}
	}
	return at
}

// idle reports whether no work waits or runs; s.mu is held.
func (c *client) idle() bool {
	return !slices.ContainsFunc(c.queues[:], func(q []task) bool { return len(q) > 0 })
}

// run does work until none is ready.
func (s *scheduler) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.running-- }()
	for {
		c, p := s.next()
		if c == nil {
			return
		}
		work := c.queues[p][0].run
		c.busy[p] = true
		s.turn++
		c.last = s.turn
		cores := max(s.cores/max(s.running, 1), 1)
		s.mu.Unlock()
		work(cores)
		s.mu.Lock()
		c.queues[p] = slices.Delete(c.queues[p], 0, 1)
		c.busy[p] = false
		s.waiting = slices.DeleteFunc(s.waiting, (*client).idle)
		c.work.Done()
	}
}

// next returns the session and the kind of the next work, or nil. A session's
// final waits for its partial, which is then stopped, and gets all free cores.
func (s *scheduler) next() (best *client, kind priority) {
	for p := range priorities {
		for _, c := range s.waiting {
			if len(c.queues[p]) > 0 && !c.busy[p] && !(p == finals && c.busy[partials]) && (best == nil || c.last < best.last) {
				best, kind = c, p
			}
		}
		if best != nil {
			return best, kind
		}
	}
	return nil, 0
}
