package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/otograph/otograph/internal/service/worker"
)

// Outage returns a function with which a worker or fetcher reports outages: for
// each part, whether its failure keeps the member from claiming tasks, and
// since when. Call it once for each member.
func (m *Metrics) Outage(member string) func(part worker.Part, since time.Time) {
	auto := m.auto()
	state := auto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "otograph_outage", Help: "1 while a failure of a part keeps a member (worker, fetcher) from claiming tasks.",
		ConstLabels: prometheus.Labels{"member": member},
	}, []string{"part"})
	begun := auto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "otograph_outage_start_timestamp_seconds", Help: "When the failure began, in seconds since 1970; 0 if there is none.",
		ConstLabels: prometheus.Labels{"member": member},
	}, []string{"part"})
	report := func(part worker.Part, since time.Time) {
		at := 0.0
		if !since.IsZero() {
			at = float64(since.UnixMilli()) / 1000
		}
		state.WithLabelValues(string(part)).Set(number(!since.IsZero()))
		begun.WithLabelValues(string(part)).Set(at)
	}
	for _, part := range worker.Parts {
		report(part, time.Time{})
	}
	return report
}

// Cage exports which parts of the decoder's sandbox are in force in this
// process.
func (m *Metrics) Cage(parts map[string]bool) {
	state := m.gauges("otograph_cage", "1 for each part of the decoder's cage that is in force, 0 for each that is not.", "part")
	for part, there := range parts {
		state.WithLabelValues(part).Set(number(there))
	}
}
