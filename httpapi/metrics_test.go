package httpapi

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

	"github.com/otograph/otograph/tasks"
	"github.com/otograph/otograph/tasks/worker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, 200, rec.Code, "%s", rec.Body)
	return rec.Body.String()
}

// quickEngine reports two stages and ends as it is told.
type quickEngine struct{ err error }

func (quickEngine) ModelSet() string { return "" }
func (e quickEngine) Run(_ context.Context, job worker.Job) (tasks.Outcome, error) {
	job.Progress("decode", 0.5)
	job.Progress("decode", 1)
	job.Progress("transcribe", 1)
	return tasks.Outcome{Seconds: 100, Tier: "standard"}, e.err
}

func TestMeasureEngine(t *testing.T) {
	m := NewMetrics(nil)
	reports := 0
	job := worker.Job{Progress: func(string, float64) { reports++ }}
	for _, err := range []error{nil, nil, tasks.Permanent(errors.New("x")), errors.New("x")} {
		_, got := MeasureEngine(quickEngine{err}, m).Run(context.Background(), job)
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

// doerFunc is an HTTPDoer.
type doerFunc func(*http.Request) (*http.Response, error)

func (f doerFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestMeasureCallbacks(t *testing.T) {
	m := NewMetrics(nil)
	answers := []any{200, 204, 301, 500, errors.New("x")}
	d := MeasureCallbacks(doerFunc(func(*http.Request) (*http.Response, error) {
		next := answers[0]
		answers = answers[1:]
		if err, ok := next.(error); ok {
			return nil, err
		}
		return &http.Response{StatusCode: next.(int), Body: io.NopCloser(strings.NewReader(""))}, nil
	}), m)
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

// TestWorkersMetricsAreShown: two workers write, the server shows both; what a
// dead worker left and what is no metrics file does no harm.
func TestWorkersMetricsAreShown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metrics")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		m := NewMetrics(nil)
		_, err := MeasureEngine(quickEngine{}, m).Run(ctx, worker.Job{})
		require.NoError(t, err)
		wg.Go(func() { m.WriteFiles(ctx, dir, name, 10*time.Millisecond, slog.New(slog.DiscardHandler)) })
	}
	server := NewMetrics(nil)
	server.ReadFiles(dir)
	server.request("/v1/tasks", "GET", 200, time.Millisecond)
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
	assert.ElementsMatch(t, []string{stale, filepath.Join(dir, "broken.prom")}, left, "workers take their files along")
}
