package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/spec"
)

const firstPause = 250 * time.Millisecond

// reportPause returns the pause after a report of a run that has lasted so
// long: a twentieth of its time, so that a long run needs hardly more
// transactions than a short one.
func reportPause(lasted time.Duration) time.Duration { return max(firstPause, lasted/20) }

// reports holds the engine's progress and sentences between writes.
type reports struct {
	mu       sync.Mutex
	latest   *queue.Progress // not yet written
	pending  []spec.Segment  // sentences whose writing is not confirmed
	first    int             // the number of the first pending sentence
	retry    int             // number of sentences in a failed write; 0 for none
	inFlight *queue.Progress // the write in progress that has sentences
	begun    chan struct{}   // receives the arrival of the first sentences
}

// take returns the progress to write next; one write at a time has sentences.
func (r *reports) take() *queue.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.latest
	r.latest = nil
	if p != nil && r.inFlight == nil && len(r.pending) > 0 {
		n := cmp.Or(r.retry, len(r.pending))
		p.First, p.Segments = r.first, slices.Clone(r.pending[:n])
		r.inFlight = p
	}
	return p
}

// written records the outcome of the write of p. After an error the same
// sentences are written again before any other: the commit may have taken
// place, and followers may know them.
func (r *reports) written(p *queue.Progress, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inFlight != p { // p had no sentences, or belongs to another claim
		return
	}
	r.inFlight = nil
	n := len(p.Segments)
	if err != nil {
		r.retry = n
		return
	}
	r.first, r.pending, r.retry = r.first+n, r.pending[n:], 0
}

func (r *reports) set(p *queue.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = p
}

// addSegments adds sentences, which are written with the next progress.
func (r *reports) addSegments(sentences []spec.Segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first+len(r.pending) == 0 {
		backoff.Signal(r.begun)
	}
	r.pending = append(r.pending, sentences...)
}

// clear drops all progress before the next claim.
func (r *reports) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest, r.pending, r.first, r.retry, r.inFlight = nil, nil, 0, 0, nil
}

// reporter returns a function through which the engine reports its progress. It
// never waits: until stop is called, another goroutine writes the latest
// report, without a pause for the first sentences, then ever more rarely, until
// only the heartbeats contain it.
func (w *Worker) reporter(ctx context.Context, c *tasks.Claim) (report func(stage string, done float64), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	var wait sync.WaitGroup
	wait.Go(func() { w.report(ctx, c, changed) })
	report = func(stage string, done float64) {
		w.reports.set(&queue.Progress{TaskID: c.ID, Attempt: c.Held.Attempt, Stage: stage, Fraction: done})
		backoff.Signal(changed)
	}
	return report, func() {
		cancel()
		wait.Wait()
		w.reports.clear()
	}
}

func (w *Worker) report(ctx context.Context, c *tasks.Claim, changed <-chan struct{}) {
	begun := time.Now()
	for pause := firstPause; pause < w.config.Heartbeat; pause = reportPause(time.Since(begun)) {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if p := w.reports.take(); p != nil {
			err := w.service.Report(ctx, c, *p)
			w.reports.written(p, err)
			if err != nil && ctx.Err() == nil {
				w.service.Config.Logger.DebugContext(ctx, "progress not written", "task", c.ID, "error", err)
			}
		}
		backoff.Wait(ctx, pause, w.reports.begun, nil)
	}
}
