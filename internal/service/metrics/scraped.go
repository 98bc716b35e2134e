package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/otograph/otograph/internal/service/tasks"
)

// gauge exports a value, with at most one label: its name and value.
type gauge func(name, help string, value float64, label ...string)

// scraped exports gauges that are computed at every scrape.
type scraped func(ctx context.Context, export gauge)

// Describe describes nothing, because the gauges depend on the state.
func (scraped) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s scraped) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s(ctx, func(name, help string, value float64, label ...string) {
		names, values := label[:len(label)/2], label[len(label)/2:]
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), prometheus.GaugeValue, value, values...)
	})
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// queueGauges exports the state of the queue and of the service's chores.
func queueGauges(ask func(context.Context) (tasks.Stats, error)) scraped {
	return func(ctx context.Context, export gauge) {
		st, err := ask(ctx)
		export("otograph_queue_up", "1 if the queue could be queried.", number(err == nil))
		if err != nil {
			return
		}
		for name, l := range map[string]tasks.Lane{"fetch": st.Fetch, "tasks": st.Tasks, "batch": st.Batch} {
			export("otograph_queue_waiting", "Tasks that could run now, by lane.", float64(l.Waiting), "lane", name)
			export("otograph_queue_delayed", "Tasks that wait for a retry, by lane.", float64(l.Delayed), "lane", name)
			export("otograph_queue_running", "Tasks that are running, by lane.", float64(l.Running), "lane", name)
			export("otograph_queue_audio_seconds", "Sound of the tasks that could run now, by lane; a task of unknown length counts as --unknown-length.", l.Sound, "lane", name)
			export("otograph_queue_oldest_seconds", "Waiting time of the task that has waited longest, by lane.", l.Oldest.Seconds(), "lane", name)
		}
		for state, n := range map[string]int{"waiting": st.CallbacksWaiting, "running": st.CallbacksRunning, "given_up": st.CallbacksGivenUp} {
			export("otograph_callbacks", "Callbacks by state (waiting, running, given_up).", float64(n), "state", state)
		}
		export("otograph_files_to_delete", "Files whose deletion is due.", float64(st.FilesToDelete))
		for status, n := range st.TasksByFinalState {
			export("otograph_tasks", "Tasks in a final state, by state.", float64(n), "status", string(status))
		}
		export("otograph_callbacks_oldest_seconds", "Age of the oldest pending callback.", st.OldestCallback.Seconds())
		for chore, at := range st.ChoresDone {
			export("otograph_chore_done_timestamp_seconds", "When a chore (cleanup, collect) was last done without an error, in seconds since 1970.", float64(at.UnixMilli())/1000, "chore", chore)
		}
		for lane, paused := range st.PausedLanes {
			export("otograph_lane_paused", "1 for a lane that an operator paused.", number(paused), "lane", lane)
		}
	}
}
