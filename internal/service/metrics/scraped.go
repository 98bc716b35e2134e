package metrics

import (
	"context"

	"github.com/otograph/otograph/internal/service/tasks"
)

// scraped adds values that are computed at every scrape to the metrics of this
// scrape.
type scraped func(ctx context.Context, now *Metrics)

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// queueGauges exports the state of the queue and of the service's chores.
func queueGauges(ask func(context.Context) (tasks.Stats, error)) scraped {
	return func(ctx context.Context, now *Metrics) {
		st, err := ask(ctx)
		now.family("otograph_queue_up", "1 if the queue could be queried.").gauge().Set(number(err == nil))
		if err != nil {
			return
		}
		for name, l := range map[string]tasks.Lane{"fetch": st.Fetch, "tasks": st.Tasks, "batch": st.Batch} {
			now.family("otograph_queue_waiting", "Tasks that could run now, by lane.", "lane").gauge(name).Set(float64(l.Waiting))
			now.family("otograph_queue_delayed", "Tasks that wait for a retry, by lane.", "lane").gauge(name).Set(float64(l.Delayed))
			now.family("otograph_queue_running", "Tasks that are running, by lane.", "lane").gauge(name).Set(float64(l.Running))
			now.family("otograph_queue_audio_seconds", "Sound of the tasks that could run now, by lane; a task of unknown length counts as --unknown-length.", "lane").gauge(name).Set(l.Sound)
			now.family("otograph_queue_oldest_seconds", "Waiting time of the task that has waited longest, by lane.", "lane").gauge(name).Set(l.Oldest.Seconds())
		}
		for state, n := range map[string]int{"waiting": st.CallbacksWaiting, "running": st.CallbacksRunning, "given_up": st.CallbacksGivenUp} {
			now.family("otograph_callbacks", "Callbacks by state (waiting, running, given_up).", "state").gauge(state).Set(float64(n))
		}
		now.family("otograph_files_to_delete", "Files whose deletion is due.").gauge().Set(float64(st.FilesToDelete))
		for status, n := range st.TasksByFinalState {
			now.family("otograph_tasks", "Tasks in a final state, by state.", "status").gauge(string(status)).Set(float64(n))
		}
		now.family("otograph_callbacks_oldest_seconds", "Age of the oldest pending callback.").gauge().Set(st.OldestCallback.Seconds())
		for chore, at := range st.ChoresDone {
			now.family("otograph_chore_done_timestamp_seconds", "When a chore (cleanup, collect) was last done without an error, in seconds since 1970.", "chore").gauge(chore).Set(float64(at.UnixMilli()) / 1000)
		}
		for lane, paused := range st.PausedLanes {
			now.family("otograph_lane_paused", "1 for a lane that an operator paused.", "lane").gauge(lane).Set(number(paused))
		}
	}
}
