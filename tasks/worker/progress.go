package worker

import (
	"context"
	"sync"
	"time"

	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/tasks"
)

// reportPause is the shortest time between two reports of a worker's progress.
const reportPause = 500 * time.Millisecond

// reporter returns what the engine tells its progress. It never waits: what it
// was told last is written beside the run, until stop is called.
func (w *Worker) reporter(ctx context.Context, c *tasks.Claim) (tell func(stage string, done float64), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var stage string
	var done float64
	news := make(chan struct{}, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		pause := time.NewTimer(0)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-news:
			}
			mu.Lock()
			s, d := stage, done
			mu.Unlock()
			if err := w.service.Report(ctx, c, spec.Stage(s), d); err != nil && ctx.Err() == nil {
				w.service.Log().DebugContext(ctx, "progress not written", "task", c.ID, "error", err)
			}
			pause.Reset(reportPause)
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
		}
	})
	tell = func(s string, d float64) {
		mu.Lock()
		stage, done = s, d
		mu.Unlock()
		select {
		case news <- struct{}{}:
		default: // it is written with what was told before
		}
	}
	return tell, func() {
		cancel()
		wait.Wait()
	}
}
