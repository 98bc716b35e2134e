package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/spec"
)

// MeasureEngine returns an engine that wraps e and counts in m: runs by
// outcome, seconds of audio and of work and their ratio by tier, and the time
// from the first to the last report of each stage.
func (m *Metrics) MeasureEngine(e worker.Engine) worker.Engine { return &measuredEngine{e, m} }

type measuredEngine struct {
	worker.Engine
	m *Metrics
}

// Run implements worker.Engine.
func (e *measuredEngine) Run(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
	start := time.Now()
	first, last := map[string]time.Time{}, map[string]time.Time{}
	report, before := job.Progress, start
	job.Progress = func(stage string, done float64) {
		// Reports arrive one at a time (worker.Job), so plain maps are safe.
		now := time.Now()
		if first[stage].IsZero() {
			first[stage] = before
		}
		last[stage], before = now, now
		report(stage, done)
	}
	out, err := e.Engine.Run(ctx, job)
	took := time.Since(start).Seconds()
	switch {
	case err == nil:
		e.m.runs.WithLabelValues("done").Inc()
	case spec.IsPermanent(err):
		e.m.runs.WithLabelValues("refused").Inc()
	default:
		e.m.runs.WithLabelValues("failed").Inc()
	}
	if err == nil && out.Seconds > 0 {
		e.m.audio.WithLabelValues(string(out.Tier)).Add(out.Seconds)
		e.m.work.WithLabelValues(string(out.Tier)).Add(took)
		e.m.rtf.WithLabelValues(string(out.Tier)).Observe(took / out.Seconds)
		for stage, at := range last {
			e.m.stages.WithLabelValues(stage).Observe(at.Sub(first[stage]).Seconds())
		}
	}
	return out, err
}

// MeasureCallbacks returns a client that wraps c and counts callback deliveries
// in m by whether they were confirmed.
func (m *Metrics) MeasureCallbacks(c safehttp.Doer) safehttp.Doer {
	return doer(func(r *http.Request) (*http.Response, error) {
		resp, err := c.Do(r)
		outcome := "failed"
		if err == nil && resp.StatusCode/100 == 2 {
			outcome = "delivered"
		}
		m.callbacks.WithLabelValues(outcome).Inc()
		return resp, err
	})
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
