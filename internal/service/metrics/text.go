package metrics

import (
	"context"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/otograph/otograph/internal/service/tasks"
)

// Names returns the names of the metrics that may appear, sorted, without those
// that are computed at a scrape.
func (m *Metrics) Names() []string { return slices.Sorted(maps.Keys(m.help)) }

// Handler returns the handler of scrapes.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, merged(append(m.recent(), m.text())...))
	})
}

var (
	labeled   = regexp.MustCompile(`(?m)^(\w+)\{(.*)\} `)
	unlabeled = regexp.MustCompile(`(?m)^(\w+) `)
)

// text returns the metrics of this process in Prometheus' text format.
func (m *Metrics) text() string {
	var b strings.Builder
	m.set.WritePrometheus(&b)
	metrics.WriteProcessMetrics(&b)
	metrics.WriteFDMetrics(&b)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	now := &Metrics{set: metrics.NewSet(), help: maps.Clone(m.help)}
	for _, s := range m.scraped {
		s(ctx, now)
	}
	now.set.WritePrometheus(&b)
	var help []string
	for name, text := range now.help {
		help = append(help, "# HELP "+name+"\n", "# HELP "+name+" "+text+"\n")
	}
	text := strings.NewReplacer(help...).Replace(b.String())
	if m.worker != "" {
		text = labeled.ReplaceAllString(text, `$1{$2,worker="`+m.worker+`"} `)
		text = unlabeled.ReplaceAllString(text, `$1{worker="`+m.worker+`"} `)
	}
	return text
}

// merged joins texts: all samples of a metric follow its help and its type.
func merged(texts ...string) string {
	lines := map[string][]string{} // by the metric's name
	for _, text := range texts {
		name := ""
		for line := range strings.Lines(text) {
			if words := strings.Fields(line); len(words) > 2 && words[0] == "#" {
				if name = words[2]; slices.Contains(lines[name], line) {
					continue
				}
			}
			lines[name] = append(lines[name], line)
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(strings.Join(lines[name], ""))
	}
	return b.String()
}

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
