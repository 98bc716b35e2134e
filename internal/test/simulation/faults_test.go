package simulation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
)

// plan runs the events that are due and returns the time of the next one.
func (w *world) plan() time.Time {
	now, s := time.Now(), w.scheduler
	for _, p := range slices.Clone(w.processes) {
		select {
		case <-p.ended: // killed, asked to end, or ended by itself
		default:
			if p.dead.Load() && !p.buried {
				p.buried = true
				s.bury(p)
				w.comeBack(p.role)
			}
			continue
		}
		if !p.buried {
			s.say("-- %s has ended", p.name)
			w.comeBack(p.role)
		}
		w.mu.Lock()
		w.processes = slices.DeleteFunc(w.processes, func(other *process) bool { return other == p })
		w.mu.Unlock()
	}
	var next time.Time
	soon := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	w.restarts = slices.DeleteFunc(w.restarts, func(r restart) bool {
		if r.at.After(now) {
			soon(r.at)
			return false
		}
		w.start(r.role)
		return true
	})
	if !w.calm.Load() {
		if !now.Before(w.next) {
			w.next = now.Add(time.Duration(float64(w.gap) * w.random.ExpFloat64()))
			w.disturb()
		}
		soon(w.next)
	}
	if now.Sub(w.looked) > 30*time.Second {
		w.looked = now
		w.check()
	}
	return next
}

// comeBack plans a process that replaces an ended one.
func (w *world) comeBack(role string) {
	w.restarts = append(w.restarts, restart{time.Now().Add(time.Duration(1 + w.random.Int64N(int64(30*time.Second)))), role})
}

// disturb causes one failure or unusual operation.
func (w *world) disturb() {
	now, s := time.Now(), w.scheduler
	if len(w.processes) == 0 {
		return
	}
	p := w.processes[w.random.IntN(len(w.processes))]
	if busy := w.busy(); busy != nil && w.random.IntN(2) == 0 {
		p = busy // disturbances are most useful while work is running
	}
	long := func(most time.Duration) time.Duration { return time.Duration(1 + w.random.Int64N(int64(most))) }
	switch w.random.IntN(18) {
	case 0, 1:
		s.disturb("kill", "%s", p.name)
		p.dead.Store(true)
	case 2, 3:
		d := 20*time.Second + long(2*time.Minute) // mostly until it is considered dead
		s.disturb("stall", "%s for %s", p.name, d)
		p.stalled = now.Add(d)
	case 4:
		d := long(time.Minute)
		s.disturb("database away", "for %s", d)
		s.dbAway = now.Add(d)
	case 5:
		d := long(2 * time.Minute)
		s.disturb("file store away", "for %s", d)
		s.blobAway = now.Add(d)
	case 6:
		d := long(2 * time.Minute)
		s.disturb("partition", "%s for %s", p.name, d)
		p.cut = now.Add(d)
	case 7:
		d := long(2 * time.Minute)
		s.disturb("disk full", "%s for %s", p.name, d)
		p.full.Store(now.Add(d).UnixNano())
	case 8:
		if w.shifts {
			shift := long(6*time.Hour) - 3*time.Hour
			s.disturb("clock shift", "%s to %s", p.name, shift)
			p.shift.Store(int64(shift))
		}
	case 9:
		s.disturb("drain", "%s", p.name)
		p.leaving.Store(true)
		p.cancel()
	case 10, 11:
		if p.role != roleServer || w.shifts { // a clock that runs ahead makes all files old
			return
		}
		s.disturb("collection", "at %s", p.name)
		p.requests.Go(func() {
			slot := <-p.slots
			defer func() { p.slots <- slot }()
			_, err := slot.Collect(context.Background(), tasks.CollectConfig{MinAge: 10 * time.Minute, Marked: time.Minute, MaxFiles: 1 << 30, MaxShare: 1})
			w.tolerate(p, err)
		})
	case 12, 13:
		w.operate("taken for dead", func(ctx context.Context, service *tasks.Service) error {
			_, err := service.Reap(ctx, p.id(), tasks.EndInterrupted, "taken for dead")
			return err
		})
	default:
		w.operator()
	}
}

// operator runs one of the operators' commands on a queue.
func (w *world) operator() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var id string
	if len(w.submissions) > 0 {
		id = w.submissions[w.random.IntN(len(w.submissions))].id
	}
	paused := w.random.IntN(3) == 0
	lane := []string{queue.LaneTasks, queue.LaneBatch}[w.random.IntN(2)]
	switch dice := w.random.IntN(3); {
	case dice == 0:
		w.operate("lane paused or resumed", func(ctx context.Context, s *tasks.Service) error {
			if w.calm.Load() {
				return nil // too late
			}
			return s.Queue().SetPaused(ctx, lane, paused)
		})
	case id == "":
	case dice == 1:
		w.canceled[id] = true
		w.operate("task canceled", func(ctx context.Context, s *tasks.Service) error {
			_, err := s.Cancel(ctx, id)
			return refusal(err)
		})
	default:
		w.retried[id] = true
		w.operate("task retried", func(ctx context.Context, s *tasks.Service) error {
			_, err := s.Retry(ctx, id)
			return refusal(err)
		})
	}
}

// refusal returns err unless it is an ordinary refusal.
func refusal(err error) error {
	for _, known := range []error{tasks.ErrNotFound, tasks.ErrFinal, tasks.ErrNotRetryable, billing.ErrInsufficientBalance, billing.ErrConcurrencyLimit} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}

// operate runs work on some server.
func (w *world) operate(what string, work func(ctx context.Context, s *tasks.Service) error) {
	w.scheduler.disturb(what, "")
	w.asking.Add(1)
	go func() {
		defer w.asking.Add(-1)
		p := w.server(rand.New(rand.NewPCG(w.seed, uint64(w.started))))
		if p == nil {
			return
		}
		defer p.requests.Done()
		slot := <-p.slots
		defer func() { p.slots <- slot }()
		w.tolerate(p, work(context.Background(), slot))
	}()
}

// busy returns a worker that has a task, or nil.
func (w *world) busy() *process {
	ids, err := db.Column[string](context.Background(), w.observer.Config.DB.Read(), "SELECT worker_id FROM tasks WHERE phase = 'running' ORDER BY worker_id")
	w.must(err)
	if len(ids) == 0 {
		return nil
	}
	id := ids[w.random.IntN(len(ids))]
	for _, p := range w.processes {
		if p.id() == id && !p.gone() {
			return p
		}
	}
	return nil
}

// tolerate fails the history for an error that the current disturbances do not
// explain.
func (w *world) tolerate(p *process, err error) {
	if err != nil && !tasks.Outage(err) && !p.gone() {
		w.fail("%s: %v", p.name, err)
	}
}
