// Package metrics holds the Prometheus metrics of a server and its workers, and
// wraps engines, clients and stores to count their calls.
package metrics

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/spec"
)

// Metrics holds the Prometheus metrics of one process, a server or a worker.
type Metrics struct {
	set     *metrics.Set
	help    map[string]string // by the metric's name
	scraped []scraped
	worker  string // the value of every metric's label worker; "" without it
	files   string // the folder of the workers' files; "" for none

	requests, seconds, upload, waiting family
	runs, audio, work, rtf, stages     family
	callbacks, failures                family
	outages, begun                     family // of members' parts

	// ObserveDatabase counts a query ("read") or transaction ("write") of the
	// database, ObserveStore an operation of the file store; err is set if the
	// database or the store failed.
	ObserveDatabase, ObserveStore func(op string, took time.Duration, err error)
}

// New returns the metrics of a server. stats is called at every scrape for the
// state of the queue; nil omits it.
func New(stats func(context.Context) (tasks.Stats, error)) *Metrics { return newMetrics("", stats) }

// NewWorker returns the metrics of a worker process, each with the label worker
// set to name, which also names the process's file.
func NewWorker(name string) *Metrics { return newMetrics(name, nil) }

func newMetrics(worker string, stats func(context.Context) (tasks.Stats, error)) *Metrics {
	metrics.ExposeMetadata(true)
	m := &Metrics{set: metrics.NewSet(), help: map[string]string{}, worker: worker}
	m.requests = m.family("otograph_http_requests_total", "Requests answered, by route, method and status.", "method", "route", "status")
	m.seconds = m.family("otograph_http_request_seconds", "Time to answer a request, by route.", "route").in(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600)
	m.upload = m.family("otograph_upload_bytes_total", "Bytes of audio received in request bodies, decoded.")
	m.upload.counter()
	m.waiting = m.family("otograph_http_waiting", "Requests that wait for their task to finish.")
	m.waiting.gauge()
	m.runs = m.family("otograph_runs_total", "Ended attempts to process a task, by outcome (done, failed, refused).", "outcome")
	m.audio = m.family("otograph_audio_seconds_total", "Seconds of audio processed, by tier.", "tier")
	m.work = m.family("otograph_work_seconds_total", "Processing time of tasks in seconds, by tier.", "tier")
	m.rtf = m.family("otograph_real_time_factor", "Processing time per second of audio, by tier.", "tier").in(.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10)
	m.stages = m.family("otograph_stage_seconds", "Time of one stage of one task.", "stage").in(.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 7200)
	m.callbacks = m.family("otograph_callback_attempts_total", "Callback deliveries tried, by outcome (delivered, failed).", "outcome")
	m.failures = m.family("otograph_attempt_failures_total", "Attempts that this process ended without a result, by cause (input, error, crash, lost, service).", "cause")
	for _, how := range failing {
		m.failures.counter(how.String()) // create the counter at zero
	}
	m.outages = m.family("otograph_outage", "1 while a failure of a part keeps a member (worker, fetcher) from claiming tasks.", "member", "part")
	m.begun = m.family("otograph_outage_start_timestamp_seconds", "When the failure began, in seconds since 1970; 0 if there is none.", "member", "part")
	m.ObserveDatabase = m.observer("database", "database")
	m.ObserveStore = m.observer("store", "file store")
	if stats != nil {
		m.scraped = append(m.scraped, queueGauges(stats))
	}
	return m
}

// family is a metric with any values of its labels.
type family struct {
	set     *metrics.Set
	sample  string    // the name, with the labels and %q for each value
	buckets []float64 // upper bounds of a histogram
}

func (m *Metrics) family(name, help string, labels ...string) family {
	m.help[name] = help
	if len(labels) > 0 {
		name += "{" + strings.Join(labels, "=%q,") + "=%q}"
	}
	return family{set: m.set, sample: name}
}

func (f family) in(buckets ...float64) family {
	f.buckets = buckets
	return f
}

func (f family) counter(values ...any) *metrics.Counter {
	return f.set.GetOrCreateCounter(fmt.Sprintf(f.sample, values...))
}

func (f family) sum(values ...any) *metrics.FloatCounter {
	return f.set.GetOrCreateFloatCounter(fmt.Sprintf(f.sample, values...))
}

func (f family) gauge(values ...any) *metrics.Gauge {
	return f.set.GetOrCreateGauge(fmt.Sprintf(f.sample, values...), nil)
}

func (f family) histogram(values ...any) *metrics.PrometheusHistogram {
	return f.set.GetOrCreatePrometheusHistogramExt(fmt.Sprintf(f.sample, values...), f.buckets)
}

// Request counts an answered request; methods outside HTTP count as "other".
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodOptions:
	default:
		method = "other" // text from a client must not become a label
	}
	m.requests.counter(method, route, strconv.Itoa(status)).Inc()
	m.seconds.histogram(route).Update(took.Seconds())
}

// Upload counts bytes of audio read from a request body.
func (m *Metrics) Upload(bytes int64) { m.upload.counter().AddInt64(bytes) }

// Waiting counts a request that waits for its task, until done is called.
func (m *Metrics) Waiting() (done func()) {
	m.waiting.gauge().Inc()
	return m.waiting.gauge().Dec
}

// observer returns a function that measures the operations of the database or
// the file store, as seen by this process.
func (m *Metrics) observer(subject, what string) func(op string, took time.Duration, err error) {
	seconds := m.family("otograph_"+subject+"_seconds", "Time of one operation of the "+what+", by operation.", "op").in(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30)
	failed := m.family("otograph_"+subject+"_errors_total", "Operations that failed because the "+what+" could not be reached, was full, or took too long, by operation.", "op")
	return func(op string, took time.Duration, err error) {
		seconds.histogram(op).Update(took.Seconds())
		// Create the counter at zero, so that rates begin with the first one.
		count := failed.counter(op)
		if err != nil {
			count.Inc()
		}
	}
}

// Build adds otograph_build_info, always 1, with the program's version.
func (m *Metrics) Build(version string) {
	m.family("otograph_build_info", "Version of the program and of Go.", "version", "go").gauge(version, runtime.Version()).Set(1)
}

// failing are the ways in which an attempt fails; a task that a draining worker
// returns did not fail.
var failing = []tasks.Ending{tasks.EndPermanent, tasks.EndRecoverable, tasks.EndCrash, tasks.EndInterrupted, tasks.EndOutage}

// AttemptEnded counts a claim that ended without a result, by its cause.
func (m *Metrics) AttemptEnded(how tasks.Ending) {
	if slices.Contains(failing, how) {
		m.failures.counter(how.String()).Inc()
	}
}

// Workers adds otograph_workers, the number of workers that living returns.
func (m *Metrics) Workers(living func() int) {
	m.scraped = append(m.scraped, func(_ context.Context, now *Metrics) {
		now.family("otograph_workers", "Worker processes that are alive, of all machines.").gauge().Set(float64(living()))
	})
}

// Restarts adds otograph_worker_restarts_total, the number returned by count.
func (m *Metrics) Restarts(count func() int) {
	m.scraped = append(m.scraped, func(_ context.Context, now *Metrics) {
		now.family("otograph_worker_restarts_total", "Worker processes of this server that died and were replaced.").counter().Set(uint64(count()))
	})
}

// RefusedConnections returns a function that counts refused connections.
func (m *Metrics) RefusedConnections() (refused func()) {
	return m.family("otograph_connections_refused_total", "Connections refused because too many were open, in all or from one address.").counter().Inc
}

// Outage returns a function with which a worker or fetcher reports outages: the
// part whose failure keeps the member from claiming tasks, and since when.
func (m *Metrics) Outage(member string) func(part worker.Part, since time.Time) {
	report := func(part worker.Part, since time.Time) {
		at := max(0, float64(since.UnixMilli())/1000) // the zero time is before 1970
		m.outages.gauge(member, string(part)).Set(number(!since.IsZero()))
		m.begun.gauge(member, string(part)).Set(at)
	}
	for _, part := range worker.Parts {
		report(part, time.Time{})
	}
	return report
}

// Cage exports which parts of the decoder's sandbox are in force here.
func (m *Metrics) Cage(parts map[string]bool) {
	state := m.family("otograph_cage", "1 for each part of the decoder's cage that is in force, 0 for each that is not.", "part")
	for part, there := range parts {
		state.gauge(part).Set(number(there))
	}
}

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
	outcome := "failed"
	if err == nil {
		outcome = "done"
	} else if spec.IsPermanent(err) {
		outcome = "refused"
	}
	e.m.runs.counter(outcome).Inc()
	if err == nil && out.Seconds > 0 {
		e.m.audio.sum(string(out.Tier)).Add(out.Seconds)
		e.m.work.sum(string(out.Tier)).Add(took)
		e.m.rtf.histogram(string(out.Tier)).Update(took / out.Seconds)
		for stage, at := range last {
			e.m.stages.histogram(stage).Update(at.Sub(first[stage]).Seconds())
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
		m.callbacks.counter(outcome).Inc()
		return resp, err
	})
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
