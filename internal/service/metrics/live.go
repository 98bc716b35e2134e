package metrics

import (
	"github.com/VictoriaMetrics/metrics"

	"github.com/otograph/otograph/spec"
)

// Live counts live sessions.
type Live struct {
	open          *metrics.Gauge
	ended         family
	dropped       *metrics.Counter
	final, behind *metrics.PrometheusHistogram
}

// Live adds the metrics of live sessions. Call it once.
func (m *Metrics) Live() *Live {
	delays := []float64{.3, .5, .75, 1, 1.5, 2, 3, 5, 10, 30}
	l := &Live{
		open:    m.family("otograph_live_sessions", "Open live sessions that have had sound.").gauge(),
		ended:   m.family("otograph_live_sessions_total", "Ended live sessions, by outcome (done, failed, canceled).", "outcome"),
		dropped: m.family("otograph_live_partials_dropped_total", "Texts of utterances in progress that were due, but left out because the models were busy.").counter(),
		final:   m.family("otograph_live_final_seconds", "Seconds of sound between the end of an utterance and its final text.").in(delays...).histogram(),
		behind:  m.family("otograph_live_behind_seconds", "Seconds of sound that a session had received but not transcribed, apart from an utterance in progress, at each of its events.").in(delays...).histogram(),
	}
	for _, outcome := range []string{"done", "failed", "canceled"} {
		l.ended.counter(outcome)
	}
	return l
}

// Begins counts an open session until ended is called with its outcome.
func (l *Live) Begins() (ended func(outcome string)) {
	l.open.Inc()
	return func(outcome string) {
		l.open.Dec()
		l.ended.counter(outcome).Inc()
	}
}

// Event counts an event of a session that was some seconds behind.
func (l *Live) Event(e spec.LiveEvent, behind float64) {
	l.dropped.Add(e.Dropped)
	l.behind.Update(max(0, behind))
	if e.Kind == spec.LiveFinal {
		l.final.Update(max(0, e.Behind))
	}
}
