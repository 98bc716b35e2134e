package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/otograph/otograph/spec"
)

// Live counts live sessions.
type Live struct {
	open          prometheus.Gauge
	ended         *prometheus.CounterVec
	dropped       prometheus.Counter
	final, behind prometheus.Histogram
}

// Live adds the metrics of live sessions. Call it once.
func (m *Metrics) Live() *Live {
	l := &Live{
		open:    m.auto().NewGauge(prometheus.GaugeOpts{Name: "otograph_live_sessions", Help: "Open live sessions that have had sound."}),
		ended:   m.counters("otograph_live_sessions_total", "Ended live sessions, by outcome (done, failed, canceled).", "outcome"),
		dropped: m.auto().NewCounter(prometheus.CounterOpts{Name: "otograph_live_partials_dropped_total", Help: "Texts of utterances in progress that were due, but left out because the models were busy."}),
		final:   m.delays("otograph_live_final_seconds", "Seconds of sound between the end of an utterance and its final text."),
		behind:  m.delays("otograph_live_behind_seconds", "Seconds of sound that a session had received but not transcribed, apart from an utterance in progress, at each of its events."),
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

// Event counts an event of a session that was some seconds behind.
func (l *Live) Event(e spec.LiveEvent, behind float64) {
	l.dropped.Add(float64(e.Dropped))
	l.behind.Observe(behind)
	if e.Kind == spec.LiveFinal {
		l.final.Observe(e.Behind)
	}
}

// delays returns a new histogram of the delays of live sessions.
func (m *Metrics) delays(name, help string) prometheus.Histogram {
	return m.auto().NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: []float64{.3, .5, .75, 1, 1.5, 2, 3, 5, 10, 30}})
}
