package simulation_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/otograph/otograph/internal/test/dbtest"
)

// Errors that the scheduler injects.
var (
	errBroken  = fmt.Errorf("injected: %w", io.ErrUnexpectedEOF)    // a broken connection, or a store that does not respond
	errNoSpace = fmt.Errorf("injected: %w", syscall.ENOSPC)         // a full disk
	errKilled  = fmt.Errorf("process killed: %w", context.Canceled) // not an outage: nothing retries
)

// operation is a step of a process that waits for the scheduler: the beginning
// of a transaction, its commit, a query, an operation of the file store.
type operation struct {
	process *process
	name    string
	round   int       // when it came
	ready   time.Time // not before
	answer  chan verdict
}

type verdict struct {
	after bool
	err   error
}

// scheduler releases one operation of one process at a time, in an order that
// depends on the seed. Time is virtual and passes while all processes wait for
// other things.
type scheduler struct {
	random *rand.Rand
	begun  time.Time
	wake   chan struct{}
	keep   bool // keep the trace, not only its checksum

	mu      sync.Mutex
	waiting []*operation
	round   int
	passed  int
	trace   []string
	sum     uint64

	faults   int           // operations per thousand that fail
	lost     int           // commits per thousand whose response is lost
	kills    int           // operations per ten thousand at which the process dies
	slow     int           // operations per thousand that take time …
	latency  time.Duration // … at most this much
	dbAway   time.Time     // the database does not respond until then
	blobAway time.Time     // the file store does not respond until then
	disturbs map[string]int
}

func newScheduler(random *rand.Rand) *scheduler {
	return &scheduler{random: random, begun: time.Now(), wake: make(chan struct{}, 1), disturbs: map[string]int{}}
}

// say adds a line to the trace. It is called while only one goroutine runs.
func (s *scheduler) say(format string, args ...any) {
	line := fmt.Sprintf("%10s ", time.Since(s.begun).Round(time.Millisecond)) + fmt.Sprintf(format, args...)
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d %s", s.sum, line)
	s.sum = sum.Sum64()
	if s.keep {
		s.trace = append(s.trace, line)
	}
}

// disturb counts and records a fault.
func (s *scheduler) disturb(what string, format string, args ...any) {
	s.disturbs[what]++
	s.say("-- "+what+" "+format, args...)
}

// pass blocks an operation of p until it is released.
func (s *scheduler) pass(p *process, name string) verdict {
	s.mu.Lock()
	if p.dead.Load() {
		s.mu.Unlock()
		return verdict{err: errKilled}
	}
	o := &operation{process: p, name: name, round: s.round, answer: make(chan verdict, 1)}
	s.waiting = append(s.waiting, o)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return <-o.answer
}

// run releases operations until the time end, or until done returns true. plan
// is called before each operation and returns the time of its next event.
func (s *scheduler) run(end time.Time, plan func() time.Time, done func() bool) {
	for {
		synctest.Wait()
		next := plan()
		if done() || !time.Now().Before(end) {
			return
		}
		if next.IsZero() || next.After(end) {
			next = end
		}
		o, at := s.pick()
		if o != nil {
			s.release(o)
			continue
		}
		if !at.IsZero() && at.Before(next) {
			next = at
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pick returns an operation that can continue now. Otherwise it returns the
// time at which the first operation can.
func (s *scheduler) pick() (*operation, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	now := time.Now()
	slices.SortStableFunc(s.waiting, func(a, b *operation) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.process.number, b.process.number), strings.Compare(a.name, b.name))
	})
	var can []int
	var first time.Time
	for i, o := range s.waiting {
		if o.ready.IsZero() { // new: choose its duration
			o.ready = now
			if s.random.IntN(1000) < s.slow {
				o.ready = now.Add(time.Duration(1 + s.random.Int64N(int64(s.latency))))
			}
		}
		at := o.ready
		if at.Before(o.process.stalled) {
			at = o.process.stalled
		}
		if !at.After(now) {
			can = append(can, i)
		} else if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if len(can) == 0 {
		return nil, first
	}
	i := can[s.random.IntN(len(can))]
	o := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return o, time.Time{}
}

// release decides how an operation ends and releases it.
func (s *scheduler) release(o *operation) {
	s.mu.Lock()
	v := s.judge(o.process, o.name)
	s.mu.Unlock()
	o.answer <- v
}

// judge decides how an operation ends. The scheduler is locked.
func (s *scheduler) judge(p *process, name string) verdict {
	now := time.Now()
	file, commit := strings.HasPrefix(name, "file "), name == "commit"
	v := verdict{}
	switch {
	case p.dead.Load():
		return verdict{err: errKilled}
	case file && now.Before(s.blobAway), !file && now.Before(s.dbAway), now.Before(p.cut):
		v.err = errBroken
	case p.diskFull() && (name == "file write" || name == "file commit"):
		v.err = errNoSpace
	case s.random.IntN(10_000) < s.kills:
		p.dead.Store(true) // plan buries it
		v = verdict{after: commit && s.random.IntN(2) == 0, err: errKilled}
		s.disturb("kill", "%s at %s", p.name, name)
	case commit && s.random.IntN(1000) < s.lost:
		v = verdict{after: true, err: errBroken}
	case s.random.IntN(1000) < s.faults:
		v.err = errBroken
		s.disturbs["broken operation"]++
	}
	s.passed++
	switch {
	case v.after:
		s.disturbs["lost answer of a commit"]++
		s.say("%s: %s: done, but not heard of", p.name, name)
	case v.err != nil:
		s.say("%s: %s: %v", p.name, name, v.err)
	default:
		s.say("%s: %s", p.name, name)
	}
	return v
}

// bury makes the operations of a dead process fail. Its further calls have no
// effect.
func (s *scheduler) bury(p *process) {
	s.mu.Lock()
	p.dead.Store(true)
	s.waiting = slices.DeleteFunc(s.waiting, func(o *operation) bool {
		if o.process == p {
			o.answer <- verdict{err: errKilled}
		}
		return o.process == p
	})
	s.mu.Unlock()
	p.cancel()
}

// call implements the callback of dbtest.Faulty. Within a transaction nothing
// waits, because SQLite lets one process write at a time.
func (s *scheduler) call(p *process, c dbtest.Call) (after bool, err error) {
	name := c.Op
	if c.Query != "" {
		name += " " + strings.Join(strings.Fields(c.Query[:min(len(c.Query), 60)]), " ")
	}
	var v verdict
	if c.InTx {
		s.mu.Lock()
		v = s.judge(p, name)
		s.mu.Unlock()
	} else {
		v = s.pass(p, name)
	}
	return v.after, v.err
}
