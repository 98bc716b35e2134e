package worker

import (
	"context"
	"sync"
	"time"

	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/tasks"
	"github.com/otograph/otograph/tasks/queue"
)

// firstPause is the shortest time between two reports of a worker's progress.
const firstPause = 500 * time.Millisecond

// reportPause returns how long a run that has lasted so long waits after a report:
// a twentieth of its time, so that a long run costs hardly more transactions than
// a short one.
func reportPause(lasted time.Duration) time.Duration { return max(firstPause, lasted/20) }

// told is the progress that an engine told last, until it is written.
type told struct {
	mu   sync.Mutex
	last *queue.Progress
	said []spec.Segment // sentences that are not written
	from int            // the number of the first of them
}

// take returns what is to be written, once.
func (t *told) take() *queue.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.last
	t.last = nil
	if p != nil && len(t.said) > 0 {
		p.First, p.Segments = t.from, t.said
		t.from, t.said = t.from+len(t.said), nil
	}
	return p
}

// back takes back the sentences of what could not be written.
func (t *told) back(p *queue.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from == p.First+len(p.Segments) { // else the claim is another one
		t.from, t.said = p.First, append(p.Segments, t.said...)
	}
}

func (t *told) set(p *queue.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = p
}

// say adds sentences, which are written with the next progress.
func (t *told) say(sentences []spec.Segment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, sentences...)
}

// forget drops what was told, for another claim to come.
func (t *told) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.said, t.from = nil, nil, 0
}

// reporter returns what the engine tells its progress. It never waits: what it
// was told last is written beside the run, until stop is called; ever more rarely,
// and by the heartbeats alone when those come as often.
func (w *Worker) reporter(ctx context.Context, c *tasks.Claim) (tell func(stage string, done float64), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	news := make(chan struct{}, 1)
	var wait sync.WaitGroup
	wait.Go(func() { w.report(ctx, c, news) })
	tell = func(stage string, done float64) {
		w.told.set(&queue.Progress{TaskID: c.ID, Attempt: c.Held.Attempt, Stage: stage, Fraction: done})
		select {
		case news <- struct{}{}:
		default: // it is written with what was told before
		}
	}
	return tell, func() {
		cancel()
		wait.Wait()
		w.told.forget()
	}
}

// report writes what is told between heartbeats.
func (w *Worker) report(ctx context.Context, c *tasks.Claim, news <-chan struct{}) {
	begun := time.Now()
	for pause := firstPause; pause < w.config.Heartbeat; pause = reportPause(time.Since(begun)) {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		if p := w.told.take(); p != nil {
			if err := w.service.Report(ctx, c, *p); err != nil && ctx.Err() == nil {
				w.told.back(p)
				w.service.Log().DebugContext(ctx, "progress not written", "task", c.ID, "error", err)
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
