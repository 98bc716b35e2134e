package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/tasks/worker"
)

// Outage returns a function with which a worker or fetcher reports outages: for
// each part, whether its failure keeps the member from claiming tasks, and
// since when. Call it once for each member.
func (m *Metrics) Outage(member string) func(part worker.Part, since time.Time) {
	state := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "otograph_outage", Help: "1 while a failure of a part keeps a member (worker, fetcher) from claiming tasks.",
		ConstLabels: prometheus.Labels{"member": member},
	}, []string{"part"})
	begun := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "otograph_outage_start_timestamp_seconds", Help: "When the failure began, in seconds since 1970; 0 if there is none.",
		ConstLabels: prometheus.Labels{"member": member},
	}, []string{"part"})
	m.registry.MustRegister(state, begun)
	report := func(part worker.Part, since time.Time) {
		if since.IsZero() {
			state.WithLabelValues(string(part)).Set(0)
			begun.WithLabelValues(string(part)).Set(0)
			return
		}
		state.WithLabelValues(string(part)).Set(1)
		begun.WithLabelValues(string(part)).Set(float64(since.UnixMilli()) / 1000)
	}
	for _, part := range worker.Parts {
		report(part, time.Time{})
	}
	return report
}

// Cage exports which parts of the decoder's sandbox are in force in this
// process.
func (m *Metrics) Cage(s audio.SandboxState) {
	state := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "otograph_cage", Help: "1 for each part of the decoder's cage that is in force, 0 for each that is not.",
	}, []string{"part"})
	m.registry.MustRegister(state)
	for part, there := range map[string]bool{
		"landlock": s.Landlock > 0, "seccomp": s.Seccomp, "no_new_privileges": s.NoNewPrivileges,
		"no_capabilities": s.CapabilitiesDropped, "limits": s.Limits, "namespaces": s.Namespaces,
	} {
		value := 0.0
		if there {
			value = 1
		}
		state.WithLabelValues(part).Set(value)
	}
}
