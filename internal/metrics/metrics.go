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

	"github.com/otograph/otograph/internal/tasks"
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
	auto := promauto.With(m.registry)
	m.requests = auto.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_http_requests_total", Help: "Requests answered, by route, method and status.",
	}, []string{"route", "method", "status"})
	m.seconds = auto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "otograph_http_request_seconds", Help: "Time to answer a request, by route.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600},
	}, []string{"route"})
	m.upload = auto.NewCounter(prometheus.CounterOpts{
		Name: "otograph_upload_bytes_total", Help: "Bytes of audio received in request bodies, decoded.",
	})
	m.waiting = auto.NewGauge(prometheus.GaugeOpts{
		Name: "otograph_http_waiting", Help: "Requests that wait for their task to finish.",
	})
	m.runs = auto.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_runs_total", Help: "Ended attempts to process a task, by outcome (done, failed, refused).",
	}, []string{"outcome"})
	m.audio = auto.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_audio_seconds_total", Help: "Seconds of audio processed, by tier.",
	}, []string{"tier"})
	m.work = auto.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_work_seconds_total", Help: "Processing time of tasks in seconds, by tier.",
	}, []string{"tier"})
	m.rtf = auto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "otograph_real_time_factor", Help: "Processing time per second of audio, by tier.",
		Buckets: []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
	}, []string{"tier"})
	m.stages = auto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "otograph_stage_seconds", Help: "Time of one stage of one task.",
		Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 7200},
	}, []string{"stage"})
	m.callbacks = auto.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_callback_attempts_total", Help: "Callback deliveries tried, by outcome (delivered, failed).",
	}, []string{"outcome"})
	m.failures = newFailures(auto)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.database = newStoreMetrics(auto, "database", "database")
	m.store = newStoreMetrics(auto, "store", "file store")
	if stats != nil {
		m.registry.MustRegister(queueGauges(stats))
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, ErrorHandling: promhttp.ContinueOnError})
	return m
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
