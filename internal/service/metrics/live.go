package metrics

import "github.com/prometheus/client_golang/prometheus"

// Live counts live sessions.
type Live struct {
	open   prometheus.Gauge
	ended  *prometheus.CounterVec
	behind prometheus.Histogram
}

// Live adds the metrics of live sessions. Call it once.
func (m *Metrics) Live() *Live {
	l := &Live{
		open:  m.auto().NewGauge(prometheus.GaugeOpts{Name: "otograph_live_sessions", Help: "Open live sessions that have had sound."}),
		ended: m.counters("otograph_live_sessions_total", "Ended live sessions, by outcome (done, failed, canceled).", "outcome"),
		behind: m.auto().NewHistogram(prometheus.HistogramOpts{
			Name: "otograph_live_final_seconds", Help: "Seconds of sound between the end of an utterance and its final text.", Buckets: []float64{.3, .5, .75, 1, 1.5, 2, 3, 5, 10, 30},
		}),
	}
	for _, outcome := range []string{"done", "failed", "canceled"} {
		l.ended.WithLabelValues(outcome)
	}
	return l
}

// Begins counts an open session until ended is called with its outcome.
func (l *Live) Begins() (ended func(outcome string)) {
	l.open.Inc()
	return func(outcome string) {
		l.open.Dec()
		l.ended.WithLabelValues(outcome).Inc()
	}
}

// Final counts a final text that came some seconds after its utterance.
func (l *Live) Final(behind float64) { l.behind.Observe(behind) }
