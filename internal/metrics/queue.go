package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/otograph/otograph/internal/tasks"
)

// queueCollector queries the queue at every scrape.
type queueCollector struct {
	ask func(context.Context) (tasks.Stats, error)
}

var (
	descWaiting  = prometheus.NewDesc("otograph_queue_waiting", "Tasks that could run now, by lane.", []string{"lane"}, nil)
	descDelayed  = prometheus.NewDesc("otograph_queue_delayed", "Tasks that wait for a retry, by lane.", []string{"lane"}, nil)
	descRunning  = prometheus.NewDesc("otograph_queue_running", "Tasks that are running, by lane.", []string{"lane"}, nil)
	descOldest   = prometheus.NewDesc("otograph_queue_oldest_seconds", "Waiting time of the task that has waited longest, by lane.", []string{"lane"}, nil)
	descCallback = prometheus.NewDesc("otograph_callbacks", "Callbacks by state (waiting, running, given_up).", []string{"state"}, nil)
	descToDelete = prometheus.NewDesc("otograph_files_to_delete", "Files whose deletion is due.", nil, nil)
	descTasks    = prometheus.NewDesc("otograph_tasks", "Tasks in a final state, by state.", []string{"status"}, nil)
	descUp       = prometheus.NewDesc("otograph_queue_up", "1 if the queue could be queried.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descWaiting, descDelayed, descRunning, descOldest, descCallback, descToDelete, descTasks, descUp} {
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
	st, err := c.ask(ctx)
	if err != nil {
		gauge(descUp, 0)
		return
	}
	gauge(descUp, 1)
	for name, l := range map[string]tasks.Lane{"fetch": st.Fetch, "tasks": st.Tasks, "batch": st.Batch} {
		gauge(descWaiting, float64(l.Waiting), name)
		gauge(descDelayed, float64(l.Delayed), name)
		gauge(descRunning, float64(l.Running), name)
		gauge(descOldest, l.Oldest.Seconds(), name)
	}
	gauge(descCallback, float64(st.CallbacksWaiting), "waiting")
	gauge(descCallback, float64(st.CallbacksRunning), "running")
	gauge(descCallback, float64(st.CallbacksGivenUp), "given_up")
	gauge(descToDelete, float64(st.FilesToDelete))
	for status, n := range st.TasksByFinalState {
		gauge(descTasks, float64(n), string(status))
	}
}
