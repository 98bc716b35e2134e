package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/otograph/otograph/internal/tasks"
)

// causes maps how a claim ended to the label cause. A task that a draining
// worker returns did not fail.
var causes = map[tasks.Ending]string{
	tasks.EndPermanent:   "input",   // the recording or its address
	tasks.EndRecoverable: "error",   // tried again
	tasks.EndCrash:       "crash",   // of native code
	tasks.EndInterrupted: "lost",    // the worker was killed or its machine was lost
	tasks.EndOutage:      "service", // database, file store, disk, memory
}

// AttemptEnded counts a claim that ended without a result, by its cause.
func (m *Metrics) AttemptEnded(how tasks.Ending) {
	if cause, ok := causes[how]; ok {
		m.failures.WithLabelValues(cause).Inc()
	}
}

func newFailures() *prometheus.CounterVec {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "otograph_attempt_failures_total", Help: "Attempts that this process ended without a result, by cause (input, error, crash, lost, service).",
	}, []string{"cause"})
	for _, cause := range causes {
		failures.WithLabelValues(cause) // create the counter at zero
	}
	return failures
}

// Workers adds otograph_workers, the number of worker processes returned by
// living.
func (m *Metrics) Workers(living func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "otograph_workers", Help: "Worker processes that are alive, of all machines.",
	}, func() float64 { return float64(living()) }))
}

// Restarts adds otograph_worker_restarts_total, the number returned by count.
func (m *Metrics) Restarts(count func() int) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "otograph_worker_restarts_total", Help: "Worker processes of this server that died and were replaced.",
	}, func() float64 { return float64(count()) }))
}

// RefusedConnections adds otograph_connections_refused_total and returns the
// function that counts one.
func (m *Metrics) RefusedConnections() (refused func()) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "otograph_connections_refused_total", Help: "Connections refused because too many were open, in all or from one address.",
	})
	m.registry.MustRegister(counter)
	return counter.Inc
}

// Upkeep adds the metrics returned by ask, which is called at every scrape: the
// age of the oldest callback, the last time of each chore, and which lanes are
// paused.
func (m *Metrics) Upkeep(ask func(context.Context) (tasks.Upkeep, error)) {
	m.registry.MustRegister(&upkeepCollector{ask})
}

type upkeepCollector struct {
	ask func(context.Context) (tasks.Upkeep, error)
}

var (
	descOldestCallback = prometheus.NewDesc("otograph_callbacks_oldest_seconds", "Age of the oldest pending callback.", nil, nil)
	descChore          = prometheus.NewDesc("otograph_chore_done_timestamp_seconds", "When a chore (cleanup, collect) was last done without an error, in seconds since 1970.", []string{"chore"}, nil)
	descPaused         = prometheus.NewDesc("otograph_lane_paused", "1 for a lane that an operator paused.", []string{"lane"}, nil)
)

// Describe implements prometheus.Collector.
func (c *upkeepCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descOldestCallback
	ch <- descChore
	ch <- descPaused
}

// Collect implements prometheus.Collector. otograph_queue_up shows whether the
// database answers.
func (c *upkeepCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	u, err := c.ask(ctx)
	if err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descOldestCallback, u.OldestCallback.Seconds())
	for chore, at := range u.ChoresDone {
		gauge(descChore, float64(at.UnixMilli())/1000, chore)
	}
	for lane, paused := range u.PausedLanes {
		value := 0.0
		if paused {
			value = 1
		}
		gauge(descPaused, value, lane)
	}
}
