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

const firstPause = 500 * time.Millisecond

// reportPause returns the pause after a report of a run that has lasted so
// long: a twentieth of its time, so that a long run needs hardly more
// transactions than a short one.
func reportPause(lasted time.Duration) time.Duration { return max(firstPause, lasted/20) }

// told holds the engine's latest progress until it is written.
type told struct {
	mu     sync.Mutex
	last   *queue.Progress
	said   []spec.Segment  // sentences not known to be written
	from   int             // the number of the first of them
	again  int             // number of them in a failed write; 0 for none
	flying *queue.Progress // the write in progress that has sentences
}

// take returns the progress to write next. Only one write at a time contains
// sentences.
func (t *told) take() *queue.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.last
	t.last = nil
	if p != nil && t.flying == nil && len(t.said) > 0 {
		n := cmp.Or(t.again, len(t.said))
		p.First, p.Segments = t.from, slices.Clone(t.said[:n])
		t.flying = p
	}
	return p
}

// written records the outcome of the write of p. After an error the same
// sentences are written again before any other: the commit may have taken
// place, and followers may know them.
func (t *told) written(p *queue.Progress, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flying != p { // it had no sentences, or belongs to another claim
		return
	}
	t.flying = nil
	n := len(p.Segments)
	if err != nil {
		t.again = n
		return
	}
	t.from, t.said, t.again = t.from+n, t.said[n:], 0
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

// forget drops all progress before the next claim.
func (t *told) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.said, t.from, t.again, t.flying = nil, nil, 0, 0, nil
}

// reporter returns a function through which the engine reports its progress. It
// never waits: the latest report is written concurrently with the run, until
// stop is called. Writes become rarer during the run, until the heartbeats
// alone carry the progress.
func (w *Worker) reporter(ctx context.Context, c *tasks.Claim) (tell func(stage string, done float64), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	news := make(chan struct{}, 1)
	var wait sync.WaitGroup
	wait.Go(func() { w.report(ctx, c, news) })
	tell = func(stage string, done float64) {
		w.told.set(&queue.Progress{TaskID: c.ID, Attempt: c.Held.Attempt, Stage: stage, Fraction: done})
		backoff.Signal(news)
	}
	return tell, func() {
		cancel()
		wait.Wait()
		w.told.forget()
	}
}

func (w *Worker) report(ctx context.Context, c *tasks.Claim, news <-chan struct{}) {
	begun := time.Now()
	for pause := firstPause; pause < w.config.Heartbeat; pause = reportPause(time.Since(begun)) {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		if p := w.told.take(); p != nil {
			err := w.service.Report(ctx, c, *p)
			w.told.written(p, err)
			if err != nil && ctx.Err() == nil {
				w.service.Logger.DebugContext(ctx, "progress not written", "task", c.ID, "error", err)
			}
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}
