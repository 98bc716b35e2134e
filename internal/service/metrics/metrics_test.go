package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/spec"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, 200, rec.Code, "%s", rec.Body)
	return rec.Body.String()
}

// quickEngine reports two stages and returns err.
type quickEngine struct{ err error }

func (quickEngine) ModelSet() string { return "" }
func (e quickEngine) Run(_ context.Context, job worker.Job) (tasks.Outcome, error) {
	job.Progress("decode", 0.5)
	job.Progress("decode", 1)
	job.Progress("transcribe", 1)
	return tasks.Outcome{Seconds: 100, Tier: "standard"}, e.err
}

func TestMeasureEngine(t *testing.T) {
	m := New(nil)
	reports := 0
	job := worker.Job{Progress: func(string, float64) { reports++ }}
	for _, err := range []error{nil, nil, spec.Permanent(errors.New("x")), errors.New("x")} {
		_, got := m.MeasureEngine(quickEngine{err}).Run(context.Background(), job)
		assert.Equal(t, err, got)
	}
	assert.Equal(t, 12, reports)
	text := scrape(t, m)
	for _, line := range []string{
		`otograph_runs_total{outcome="done"} 2`, `otograph_runs_total{outcome="refused"} 1`, `otograph_runs_total{outcome="failed"} 1`,
		`otograph_audio_seconds_total{tier="standard"} 200`, `otograph_real_time_factor_count{tier="standard"} 2`,
		`otograph_stage_seconds_count{stage="decode"} 2`, `otograph_stage_seconds_count{stage="transcribe"} 2`,
	} {
		assert.Contains(t, text, line)
	}
}

// doerFunc is a safehttp.Doer.
type doerFunc func(*http.Request) (*http.Response, error)

func (f doerFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestMeasureCallbacks(t *testing.T) {
	m := New(nil)
	answers := []any{200, 204, 301, 500, errors.New("x")}
	d := m.MeasureCallbacks(doerFunc(func(*http.Request) (*http.Response, error) {
		next := answers[0]
		answers = answers[1:]
		if err, ok := next.(error); ok {
			return nil, err
		}
		return &http.Response{StatusCode: next.(int), Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	for range 5 {
		resp, err := d.Do(nil)
		if err == nil {
			resp.Body.Close()
		}
	}
	text := scrape(t, m)
	assert.Contains(t, text, `otograph_callback_attempts_total{outcome="delivered"} 2`)
	assert.Contains(t, text, `otograph_callback_attempts_total{outcome="failed"} 3`)
}

// TestWorkersMetricsAreExported checks that the server exports the metrics of
// two workers, and ignores files of dead workers and files without metrics.
func TestWorkersMetricsAreExported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metrics")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		m := NewWorker(name)
		_, err := m.MeasureEngine(quickEngine{}).Run(ctx, worker.Job{Progress: func(string, float64) {}})
		require.NoError(t, err)
		wg.Go(func() { m.WriteFiles(ctx, dir, 10*time.Millisecond, slog.New(slog.DiscardHandler)) })
	}
	server := New(nil)
	server.ReadFiles(dir)
	server.Request("/v1/tasks", "GET", 200, time.Millisecond)
	require.Eventually(t, func() bool {
		text := scrape(t, server)
		return strings.Contains(text, `otograph_runs_total{outcome="done",worker="one"} 1`) && strings.Contains(text, `otograph_runs_total{outcome="done",worker="two"} 1`) &&
			strings.Contains(text, `otograph_http_requests_total{method="GET",route="/v1/tasks",status="200"} 1`) && strings.Contains(text, `process_resident_memory_bytes{worker="one"}`)
	}, 10*time.Second, 10*time.Millisecond)

	stale := filepath.Join(dir, "dead.prom")
	require.NoError(t, os.WriteFile(stale, []byte("otograph_upload_bytes_total 5\n"), 0o600))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(stale, old, old))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.prom"), []byte("{{{"), 0o600))
	text := scrape(t, server)
	assert.NotContains(t, text, `worker="dead"`)
	assert.Contains(t, text, `worker="one"`)

	cancel()
	wg.Wait()
	left, err := filepath.Glob(filepath.Join(dir, "*.prom"))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{stale, filepath.Join(dir, "broken.prom")}, left, "a worker removes its file")
}

func TestUpkeepIsExported(t *testing.T) {
	u, failed := tasks.Stats{
		OldestCallback: 90 * time.Second, ChoresDone: map[string]time.Time{"cleanup": time.Unix(1000, 5e8)},
		PausedLanes: map[string]bool{"tasks": false, "batch": true},
	}, error(nil)
	m := New(func(context.Context) (tasks.Stats, error) { return u, failed })
	m.Workers(func() int { return 3 })
	m.Restarts(func() int { return 4 })
	refused := m.RefusedConnections()
	refused()
	for _, how := range []tasks.Ending{tasks.EndOutage, tasks.EndOutage, tasks.EndHandedBack, tasks.EndPermanent} {
		m.AttemptEnded(how)
	}
	text := scrape(t, m)
	for _, line := range []string{
		"otograph_callbacks_oldest_seconds 90", `otograph_chore_done_timestamp_seconds{chore="cleanup"} 1000.5`,
		`otograph_lane_paused{lane="batch"} 1`, `otograph_lane_paused{lane="tasks"} 0`, "otograph_workers 3", "otograph_worker_restarts_total 4",
		"otograph_connections_refused_total 1", `otograph_attempt_failures_total{cause="service"} 2`,
		`otograph_attempt_failures_total{cause="input"} 1`, `otograph_attempt_failures_total{cause="crash"} 0`,
	} {
		assert.Contains(t, text, "\n"+line+"\n")
	}
	assert.NotContains(t, text, "handed")
	failed = errors.New("no answer")
	assert.NotContains(t, scrape(t, m), "otograph_lane_paused")
}

// TestProblemsAreExported checks that every part that can have problems is
// exported from the start.
func TestProblemsAreExported(t *testing.T) {
	m := New(nil)
	report := m.Outage("worker")
	text := scrape(t, m)
	for _, part := range worker.Parts {
		assert.Contains(t, text, `otograph_outage{member="worker",part="`+string(part)+`"} 0`)
	}
	report(worker.PartDisk, time.Unix(1000, 0))
	text = scrape(t, m)
	assert.Contains(t, text, `otograph_outage{member="worker",part="disk"} 1`)
	assert.Contains(t, text, `otograph_outage_start_timestamp_seconds{member="worker",part="disk"} 1000`)
	report(worker.PartDisk, time.Time{})
	assert.Contains(t, scrape(t, m), `otograph_outage_start_timestamp_seconds{member="worker",part="disk"} 0`)
}

func TestCageIsExported(t *testing.T) {
	m := New(nil)
	m.Cage(map[string]bool{"seccomp": true, "landlock": false})
	text := scrape(t, m)
	assert.Contains(t, text, `otograph_cage{part="seccomp"} 1`)
	assert.Contains(t, text, `otograph_cage{part="landlock"} 0`)
}
