package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/otograph/otograph/internal/service/tasks"
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

func (m *Metrics) newFailures() *prometheus.CounterVec {
	failures := m.counters("otograph_attempt_failures_total", "Attempts that this process ended without a result, by cause (input, error, crash, lost, service).", "cause")
	for _, cause := range causes {
		failures.WithLabelValues(cause) // create the counter at zero
	}
	return failures
}

// Workers adds otograph_workers, the number of worker processes returned by
// living.
func (m *Metrics) Workers(living func() int) {
	m.auto().NewGaugeFunc(prometheus.GaugeOpts{
		Name: "otograph_workers", Help: "Worker processes that are alive, of all machines.",
	}, func() float64 { return float64(living()) })
}

// Restarts adds otograph_worker_restarts_total, the number returned by count.
func (m *Metrics) Restarts(count func() int) {
	m.auto().NewCounterFunc(prometheus.CounterOpts{
		Name: "otograph_worker_restarts_total", Help: "Worker processes of this server that died and were replaced.",
	}, func() float64 { return float64(count()) })
}

// RefusedConnections adds otograph_connections_refused_total and returns the
// function that counts one.
func (m *Metrics) RefusedConnections() (refused func()) {
	return m.auto().NewCounter(prometheus.CounterOpts{
		Name: "otograph_connections_refused_total", Help: "Connections refused because too many were open, in all or from one address.",
	}).Inc
}
