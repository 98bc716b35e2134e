package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// storeMetrics measure the database and the file store as seen by this process.
type storeMetrics struct {
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
}

func (m *Metrics) newStoreMetrics(subject, what string) *storeMetrics {
	return &storeMetrics{
		seconds: m.histograms("otograph_"+subject+"_seconds", "Time of one operation of the "+what+", by operation.", "op", .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30),
		errors:  m.counters("otograph_"+subject+"_errors_total", "Operations that failed because the "+what+" could not be reached, was full, or took too long, by operation.", "op"),
	}
}

func (m *storeMetrics) observe(op string, took time.Duration, err error) {
	m.seconds.WithLabelValues(op).Observe(took.Seconds())
	// Create the counter at zero, so that rates can be computed from the first
	// operation.
	count := m.errors.WithLabelValues(op)
	if err != nil {
		count.Inc()
	}
}

// ObserveDatabase counts one query ("read") or transaction ("write") of the
// database; err is set if the database is to blame.
func (m *Metrics) ObserveDatabase(op string, took time.Duration, err error) {
	m.database.observe(op, took, err)
}

// ObserveStore counts one operation of the file store; err is set if the store
// is to blame.
func (m *Metrics) ObserveStore(op string, took time.Duration, err error) {
	m.store.observe(op, took, err)
}

// Build adds otograph_build_info, always 1, with the program's version.
func (m *Metrics) Build(version string) {
	m.gauges("otograph_build_info", "Version of the program and of Go.", "version", "go").WithLabelValues(version, runtime.Version()).Set(1)
}
