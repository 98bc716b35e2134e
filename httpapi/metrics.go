package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// LaneStats describes one lane of the queue.
type LaneStats struct {
	Waiting int           // jobs that could start now or later
	Oldest  time.Duration // how long the one that waits longest has waited
	Running int           // jobs that are worked on
}

// QueueStats is a moment of the queue.
type QueueStats struct {
	Lanes   map[string]LaneStats // by name: tasks, batch
	Workers int                  // worker processes with a fresh heartbeat
	// CallbacksWaiting are deliveries that are due or will be tried again;
	// CallbacksGivenUp those that failed four times.
	CallbacksWaiting, CallbacksGivenUp int
}

// Metrics are the Prometheus metrics of a server, in a registry of their own.
// Other parts of the process add theirs through Registry.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	upload   prometheus.Counter
	waiting  prometheus.Gauge

	tasks     *prometheus.CounterVec
	audio     *prometheus.CounterVec
	work      *prometheus.CounterVec
	rtf       *prometheus.HistogramVec
	stages    *prometheus.HistogramVec
	callbacks *prometheus.CounterVec
}

func newMetrics(queue func(context.Context) (QueueStats, error)) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_http_requests_total", Help: "Requests answered, by route, method and status.",
	}, []string{"route", "method", "status"})
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "otograph_http_request_seconds", Help: "Time to answer a request, by route.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600},
	}, []string{"route"})
	m.upload = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "otograph_upload_bytes_total", Help: "Bytes of audio taken from request bodies, decoded.",
	})
	m.waiting = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "otograph_http_waiting", Help: "Requests that wait for their task to finish.",
	})
	m.tasks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_tasks_finished_total", Help: "Tasks that reached a final state in this process's workers, by status.",
	}, []string{"status"})
	m.audio = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_audio_seconds_total", Help: "Seconds of audio worked through, by tier.",
	}, []string{"tier"})
	m.work = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_work_seconds_total", Help: "Seconds of work on tasks, by tier.",
	}, []string{"tier"})
	m.rtf = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "otograph_real_time_factor", Help: "Seconds of work per second of audio, by tier.",
		Buckets: []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
	}, []string{"tier"})
	m.stages = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "otograph_stage_seconds", Help: "Time of one stage of one task.",
		Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 7200},
	}, []string{"stage"})
	m.callbacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_callback_attempts_total", Help: "Callback deliveries tried, by outcome (delivered, failed, given_up).",
	}, []string{"outcome"})
	m.registry.MustRegister(m.requests, m.seconds, m.upload, m.waiting, m.tasks, m.audio, m.work, m.rtf, m.stages, m.callbacks,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if queue != nil {
		m.registry.MustRegister(&queueCollector{ask: queue})
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, ErrorHandling: promhttp.ContinueOnError})
	return m
}

// Metrics gives the server's metrics.
func (s *Server) Metrics() *Metrics { return s.metrics }

// Registry is where further metrics of the process are registered.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Finished counts a task that reached a final state: its status, its tier ("" if
// none ran), the seconds of its audio, the seconds it took, and those of each stage.
func (m *Metrics) Finished(status, tier string, audio, took float64, stages map[string]float64) {
	m.tasks.WithLabelValues(status).Inc()
	if audio > 0 && took > 0 {
		m.audio.WithLabelValues(tier).Add(audio)
		m.work.WithLabelValues(tier).Add(took)
		m.rtf.WithLabelValues(tier).Observe(took / audio)
	}
	for stage, seconds := range stages {
		m.stages.WithLabelValues(stage).Observe(seconds)
	}
}

// Callback counts one attempt to deliver a callback: "delivered", "failed" or "given_up".
func (m *Metrics) Callback(outcome string) { m.callbacks.WithLabelValues(outcome).Inc() }

func (m *Metrics) request(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodOptions:
	default:
		method = "other" // a stranger's word must not become a label
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// queueCollector asks the queue when it is scraped.
type queueCollector struct {
	ask func(context.Context) (QueueStats, error)
}

var (
	descWaiting  = prometheus.NewDesc("otograph_queue_waiting", "Jobs that wait, by lane.", []string{"lane"}, nil)
	descRunning  = prometheus.NewDesc("otograph_queue_running", "Jobs that are worked on, by lane.", []string{"lane"}, nil)
	descOldest   = prometheus.NewDesc("otograph_queue_oldest_seconds", "How long the job that waits longest has waited, by lane.", []string{"lane"}, nil)
	descWorkers  = prometheus.NewDesc("otograph_workers", "Worker processes with a fresh heartbeat.", nil, nil)
	descCallback = prometheus.NewDesc("otograph_callbacks", "Callbacks by state (waiting, given_up).", []string{"state"}, nil)
	descUp       = prometheus.NewDesc("otograph_queue_up", "1 when the queue could be asked.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descWaiting, descRunning, descOldest, descWorkers, descCallback, descUp} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	q, err := c.ask(ctx)
	if err != nil {
		gauge(descUp, 0)
		return
	}
	gauge(descUp, 1)
	for name, l := range q.Lanes {
		gauge(descWaiting, float64(l.Waiting), name)
		gauge(descRunning, float64(l.Running), name)
		gauge(descOldest, l.Oldest.Seconds(), name)
	}
	gauge(descWorkers, float64(q.Workers))
	gauge(descCallback, float64(q.CallbacksWaiting), "waiting")
	gauge(descCallback, float64(q.CallbacksGivenUp), "given_up")
}
