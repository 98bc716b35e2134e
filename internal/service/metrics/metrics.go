// Package metrics holds the Prometheus metrics of a server and its workers, and
// wraps engines, clients and stores to count their calls.
package metrics

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/otograph/otograph/internal/service/tasks"
)

// Metrics holds the Prometheus metrics of one process, a server or a worker, in
// a separate registry. Other parts of the process add theirs through Registry.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	upload   prometheus.Counter
	waiting  prometheus.Gauge

	runs      *prometheus.CounterVec
	audio     *prometheus.CounterVec
	work      *prometheus.CounterVec
	rtf       *prometheus.HistogramVec
	stages    *prometheus.HistogramVec
	callbacks *prometheus.CounterVec
	failures  *prometheus.CounterVec

	database, store *storeMetrics
}

// New returns the metrics. stats is called at every scrape for the state of the
// queue; nil omits it.
func New(stats func(context.Context) (tasks.Stats, error)) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.requests = m.counters("otograph_http_requests_total", "Requests answered, by route, method and status.", "route", "method", "status")
	m.seconds = m.histograms("otograph_http_request_seconds", "Time to answer a request, by route.", "route", .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600)
	m.upload = m.auto().NewCounter(prometheus.CounterOpts{
		Name: "otograph_upload_bytes_total", Help: "Bytes of audio received in request bodies, decoded.",
	})
	m.waiting = m.auto().NewGauge(prometheus.GaugeOpts{
		Name: "otograph_http_waiting", Help: "Requests that wait for their task to finish.",
	})
	m.runs = m.counters("otograph_runs_total", "Ended attempts to process a task, by outcome (done, failed, refused).", "outcome")
	m.audio = m.counters("otograph_audio_seconds_total", "Seconds of audio processed, by tier.", "tier")
	m.work = m.counters("otograph_work_seconds_total", "Processing time of tasks in seconds, by tier.", "tier")
	m.rtf = m.histograms("otograph_real_time_factor", "Processing time per second of audio, by tier.", "tier", .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10)
	m.stages = m.histograms("otograph_stage_seconds", "Time of one stage of one task.", "stage", .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 7200)
	m.callbacks = m.counters("otograph_callback_attempts_total", "Callback deliveries tried, by outcome (delivered, failed).", "outcome")
	m.failures = m.newFailures()
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.database = m.newStoreMetrics("database", "database")
	m.store = m.newStoreMetrics("store", "file store")
	if stats != nil {
		m.registry.MustRegister(queueGauges(stats))
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, ErrorHandling: promhttp.ContinueOnError})
	return m
}

func (m *Metrics) auto() promauto.Factory { return promauto.With(m.registry) }

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return m.auto().NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return m.auto().NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func (m *Metrics) histograms(name, help, label string, buckets ...float64) *prometheus.HistogramVec {
	return m.auto().NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
}

// Handler returns the handler of scrapes.
func (m *Metrics) Handler() http.Handler { return m.handler }

// Registry returns the registry for further metrics of the process.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Request counts an answered request. Methods outside the HTTP standard count
// as "other".
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodOptions:
	default:
		method = "other" // text from a client must not become a label
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// Upload counts bytes of audio read from a request body.
func (m *Metrics) Upload(bytes int64) { m.upload.Add(float64(bytes)) }

// Waiting counts a request that waits for its task to finish, until done is
// called.
func (m *Metrics) Waiting() (done func()) {
	m.waiting.Inc()
	return m.waiting.Dec
}
