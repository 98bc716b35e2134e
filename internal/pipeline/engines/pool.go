package engines

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// Keeping limits the time and the memory for which recognizers stay loaded.
type Keeping struct {
	// Idle is how long an unused recognizer stays loaded; 0 until Close.
	Idle time.Duration
	// Memory is the maximum size of the loaded recognizers' files in bytes; 0
	// means no limit. A run that needs two recognizers may exceed it.
	Memory int64
}

// errEnded is returned for a run that has ended.
var errEnded = errors.New("the run has ended")

// pool loads recognizers on first use, each once at a time, and frees unused
// ones after a while or to make room for another.
type pool struct {
	keep  Keeping
	log   *slog.Logger
	mu    sync.Mutex
	moved *sync.Cond // signaled when a recognizer was loaded or a run released one
	slots map[string]*slot
	timer *time.Timer
}

// slot holds a recognizer.
type slot struct {
	model   *models.Model
	value   asr.Transcriber // nil: not loaded
	loading bool
	users   int // leases
	left    time.Time
}

// lease holds the recognizers of a run.
type lease struct {
	slots map[*slot]bool
	ended bool
}

func newPool(keep Keeping, log *slog.Logger) *pool {
	p := &pool{keep: keep, log: log, slots: map[string]*slot{}}
	p.moved = sync.NewCond(&p.mu)
	return p
}

// size returns the size of a model's files in bytes.
func size(m *models.Model) (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

func (p *pool) slot(m *models.Model) *slot {
	key := string(m.Role) + " " + cmp.Or(m.Main().Path, m.Name)
	if p.slots[key] == nil {
		p.slots[key] = &slot{model: m}
	}
	return p.slots[key]
}

// get returns a recognizer and loads it with open if necessary. The recognizer
// stays loaded until the lease ends; without a lease, until another recognizer
// needs its memory. It stops waiting for room when ctx is done.
func (p *pool) get(ctx context.Context, l *lease, m *models.Model, open func() (asr.Transcriber, error)) (asr.Transcriber, error) {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.moved.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slot(m)
	if l != nil && !l.ended && !l.slots[s] {
		l.slots[s] = true
		s.users++
	}
	for {
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case l != nil && l.ended:
			return nil, errEnded
		case s.value != nil:
			return s.value, nil
		case !s.loading && (p.room(s) || l == nil || l.holds()):
			return p.load(s, open)
		}
		p.moved.Wait()
	}
}

// holds reports whether the run holds a recognizer, which others may wait for.
func (l *lease) holds() bool {
	for s := range l.slots {
		if s.value != nil || s.loading {
			return true
		}
	}
	return false
}

// load loads a recognizer, for which room has freed memory.
func (p *pool) load(s *slot, open func() (asr.Transcriber, error)) (value asr.Transcriber, err error) {
	s.loading = true
	p.mu.Unlock()
	defer func() { // also after a panic of open
		p.mu.Lock()
		s.loading = false
		if value != nil && err == nil {
			s.value, s.left = value, time.Now()
		}
		p.moved.Broadcast()
	}()
	return open()
}

// room frees idle recognizers, the longest idle ones first, until there is room
// for another one, and reports whether there is. A recognizer above the limit
// must be the only one.
func (p *pool) room(s *slot) bool {
	if p.keep.Memory <= 0 {
		return true
	}
	for {
		var taken int64
		var oldest *slot
		for _, other := range p.slots {
			switch {
			case other == s || other.value == nil && !other.loading:
				continue
			case other.users == 0 && other.value != nil && (oldest == nil || other.left.Before(oldest.left)):
				oldest = other
			}
			taken += size(other.model)
		}
		if taken == 0 || taken+size(s.model) <= p.keep.Memory {
			return true
		}
		if oldest == nil {
			return false
		}
		p.free(oldest)
	}
}

// free frees an unused recognizer.
func (p *pool) free(s *slot) {
	err := s.value.Close()
	s.value = nil
	ort.TrimHeap()
	p.log.Debug("a model was unloaded", "model", s.model.Name, "error", err)
}

func (p *pool) end(l *lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	now := time.Now()
	for s := range l.slots {
		s.users--
		s.left = now
	}
	p.moved.Broadcast()
	if p.keep.Idle > 0 && p.timer == nil {
		p.timer = time.AfterFunc(p.keep.Idle, p.sweep)
	}
}

// sweep frees the recognizers that have been idle for long enough, and
// schedules itself again while others are loaded.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	next := time.Duration(-1)
	for _, s := range p.slots {
		if s.value == nil || s.users > 0 {
			continue
		}
		if rest := p.keep.Idle - time.Since(s.left); rest <= 0 {
			p.free(s)
		} else if next < 0 || rest < next {
			next = rest
		}
	}
	if next >= 0 {
		p.timer = time.AfterFunc(next, p.sweep)
	}
}

// loaded returns the recognizer of a model, nil if it is not loaded.
func (p *pool) loaded(m *models.Model) asr.Transcriber {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slot(m).value
}

// Close frees all recognizers.
func (p *pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	var errs []error
	for _, s := range p.slots {
		if s.value != nil {
			errs = append(errs, s.value.Close())
			s.value = nil
		}
	}
	return errors.Join(errs...)
}
