package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/spec"
)

// follower reads the events of a task as they arrive.
type follower struct {
	t      testing.TB
	answer *http.Response
	lines  *bufio.Scanner
	told   []segmentEvent
}

// follow opens the events of a task; lastID is the Last-Event-ID, "" for none.
func (w *world) follow(id, lastID string) *follower {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/tasks/"+id+"/events", nil)
	require.NoError(w.t, err)
	req.Header.Set("X-API-Key", w.key)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := client.Do(req)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { resp.Body.Close() })
	return &follower{t: w.t, answer: resp, lines: bufio.NewScanner(resp.Body)}
}

// next returns the next event's id and data, and checks the data against the
// document; ok is false at the end of the stream.
func (f *follower) next() (id string, state taskState, ok bool) {
	f.t.Helper()
	var name string
	for f.lines.Scan() {
		line := f.lines.Text()
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "event":
			name = value
		case "id":
			id = value
		case "data":
			if name == "segment" {
				askContract(f.t, exchange{Schema: "SegmentEvent", Value: json.RawMessage(value)})
				var told segmentEvent
				require.NoError(f.t, json.Unmarshal([]byte(value), &told))
				f.told = append(f.told, told)
				continue
			}
			askContract(f.t, exchange{Schema: "TaskState", Value: json.RawMessage(value)})
			require.NoError(f.t, json.Unmarshal([]byte(value), &state))
			require.Equal(f.t, "task", name)
			require.NotEmpty(f.t, id)
			return id, state, true
		}
	}
	require.NoError(f.t, f.lines.Err())
	return "", state, false
}

// claim claims the next task as a member of the queue.
func (w *world) claim(worker string) *tasks.Claim {
	w.t.Helper()
	stop, err := w.tasks.Queue().Enter(context.Background(), queue.Member{ID: worker, Kind: queue.Worker}, time.Hour, nil)
	require.NoError(w.t, err)
	w.t.Cleanup(stop)
	c, err := w.tasks.Next(context.Background(), worker, "set")
	require.NoError(w.t, err)
	require.NotNil(w.t, c)
	return c
}

var shortResult = tasks.Outcome{Tier: spec.TierStandard, Seconds: 2}

// TestEventsFollowATaskToItsEnd: each state and each report reaches every
// follower, in order, and the stream ends with the task.
func TestEventsFollowATaskToItsEnd(t *testing.T) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, open(t, db.Options{}))
			id := w.create(upload(nil))
			f := w.follow(id, "")
			require.Equal(t, 200, f.answer.StatusCode)
			assert.Equal(t, "text/event-stream; charset=utf-8", f.answer.Header.Get("Content-Type"))
			_, state, ok := f.next()
			require.True(t, ok)
			assert.Equal(t, taskState{TaskID: id, Status: tasks.StatusProcessing, UpdatedAt: state.UpdatedAt}, state)

			c := w.claim("worker")
			require.NoError(t, w.tasks.Report(t.Context(), c, queue.Progress{Stage: "transcribe", Fraction: 0.42}))
			var last string
			for state.Stage == nil {
				last, state, ok = f.next()
				require.True(t, ok)
			}
			assert.Equal(t, []any{spec.StageTranscribe, 42, false}, []any{*state.Stage, *state.Percent, state.Final})

			again := w.follow(id, last) // a follower that has received this state only gets the end
			require.NoError(t, w.tasks.Complete(t.Context(), c, shortResult))
			for _, one := range []*follower{f, again} {
				last, state, ok = one.next()
				require.True(t, ok)
				assert.Equal(t, []any{tasks.StatusDone, true, 100}, []any{state.Status, state.Final, *state.Percent})
				assert.NotNil(t, state.FinishedAt)
				_, _, ok = one.next()
				assert.False(t, ok, "nothing follows the end")
			}
			_, state, ok = w.follow(id, "something older").next()
			assert.True(t, ok && state.Final, "a final task has one event")
			assert.Equal(t, 204, w.do("GET", "/tasks/"+id+"/events", nil, with("Last-Event-Id", last)).status, "no further event")
		})
	}
}

// TestEventsSendSentences: sentences are sent once each while the task runs, and
// again by a new attempt. When the task is done, the sentences that no report had
// are sent, and no report stays in the database.
func TestEventsSendSentences(t *testing.T) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, open(t, db.Options{}))
			id := w.create(upload(nil))
			f := w.follow(id, "")
			until := func(n int) {
				t.Helper()
				for len(f.told) < n {
					_, state, ok := f.next()
					require.True(t, ok && !state.Final)
				}
			}
			tell := func(c *tasks.Claim, percent float64, first int, texts ...string) {
				t.Helper()
				p := queue.Progress{Stage: "transcribe", Fraction: percent, First: first}
				for i, text := range texts {
					p.Segments = append(p.Segments, spec.Segment{ID: first + i, Start: float64(i), End: float64(i + 1), Text: text})
				}
				require.NoError(t, w.tasks.Report(t.Context(), c, p))
			}
			c := w.claim("worker")
			tell(c, 0.1, 0, "One.", "Two.")
			until(2)
			tell(c, 0.2, 3, "A gap waits.")
			tell(c, 0.3, 2, "Three.")
			until(4)
			late := w.follow(id, "")
			for len(late.told) < 4 {
				_, _, ok := late.next()
				require.True(t, ok)
			}
			assert.Equal(t, segmentEvent{TaskID: id, Attempt: 1, Index: 2, Start: 0, End: 1, Text: "Three."}, f.told[2])
			assert.Equal(t, f.told, late.told)

			require.NoError(t, w.tasks.Release(t.Context(), c, tasks.EndHandedBack, "again"))
			again, err := w.tasks.Next(t.Context(), "worker", "set")
			require.NoError(t, err)
			require.NotNil(t, again)
			tell(c, 0.4, 4, "Of an attempt that is over.")
			tell(again, 0.5, 0, "One.")
			until(5)
			assert.Equal(t, segmentEvent{TaskID: id, Attempt: 2, Index: 0, Start: 0, End: 1, Text: "One."}, f.told[4])
			outcome := shortResult
			outcome.Result = spec.Result{Ran: spec.Capabilities{ASR: true}, Segments: []spec.Segment{{End: 1, Text: "One."}, {ID: 1, Start: 1, End: 2, Text: "Last."}}}
			require.NoError(t, w.tasks.Complete(t.Context(), again, outcome))
			tell(again, 0.6, 1, "Too late.")
			for state := (taskState{}); !state.Final; {
				_, state, _ = f.next()
			}
			assert.Equal(t, []segmentEvent{{TaskID: id, Attempt: 2, Index: 1, Start: 1, End: 2, Text: "Last."}}, f.told[5:], "no report had it")
			var left int
			require.NoError(t, w.db.Read().QueryRow("SELECT COUNT(*) FROM live_segments").Scan(&left))
			assert.Zero(t, left)
		})
	}
}

// TestStreamSendsTextWhileTheTaskRuns: a delta arrives before the result, and
// the deltas together are the text.
func TestStreamSendsTextWhileTheTaskRuns(t *testing.T) {
	for _, format := range []string{"json", "diarized_json"} {
		t.Run(format, func(t *testing.T) { streamsWhileTheTaskRuns(t, format) })
	}
}

func streamsWhileTheTaskRuns(t *testing.T, format string) {
	w := newWorld(t)
	body, header := form(t, "talk.wav", true, "stream", "true", "response_format", format)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/audio/transcriptions", body)
	require.NoError(t, err)
	req.Header = header
	req.Header.Set("X-API-Key", w.key)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() (event struct{ Type, Delta, Text string }) {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(t, json.Unmarshal([]byte(data), &event))
				return event
			}
		}
		t.Fatal("the stream ended")
		return event
	}
	c := w.claim("worker")
	require.NoError(t, w.tasks.Report(t.Context(), c, queue.Progress{Stage: "transcribe", Segments: []spec.Segment{{Text: "Hello there."}}}))
	assert.Equal(t, "Hello there.", next().Delta, "the task still runs")
	outcome := shortResult
	outcome.Result = spec.Result{Ran: spec.Capabilities{ASR: true}, Segments: []spec.Segment{{Text: "Hello there."}, {ID: 1, Text: "Good day."}}}
	require.NoError(t, w.tasks.Complete(t.Context(), c, outcome))
	assert.Equal(t, " Good day.", next().Delta)
	done := next()
	for speakers := 0; format == "diarized_json" && speakers < 2; speakers++ { // after the text
		assert.Equal(t, "transcript.text.segment", done.Type)
		done = next()
	}
	assert.Equal(t, []string{"transcript.text.done", "Hello there. Good day."}, []string{done.Type, done.Text})
}

// TestEventsReportFailuresAndDeletion: a retry and a refusal are states too,
// and deleting a task ends the stream.
func TestEventsReportFailuresAndDeletion(t *testing.T) {
	w := newWorld(t)
	id := w.create(upload(nil))
	f := w.follow(id, "")
	f.next()
	require.NoError(t, w.tasks.Release(t.Context(), w.claim("worker"), tasks.EndRecoverable, "out of luck"))
	var state taskState
	for state.Status != tasks.StatusFailed {
		_, state, _ = f.next()
	}
	assert.Equal(t, []any{"out of luck", false}, []any{*state.ErrorMessage, state.Final})
	require.Equal(t, 200, w.do("DELETE", "/tasks/"+id, nil).status)
	_, _, ok := f.next()
	assert.False(t, ok)
}

// TestEventsCheckTheOwner: another account's task, a missing task and an
// invalid id are refused as on other endpoints.
func TestEventsCheckTheOwner(t *testing.T) {
	w := newWorld(t)
	id := w.create(upload(nil))
	_, stranger := w.newAccount("someone else", "1")
	for _, ask := range []struct {
		id   string
		with http.Header
		want int
	}{{id, with("X-Api-Key", stranger), 403}, {unknownTask, nil, 404}, {"x", nil, 404}, {id, noKey, 401}} {
		assert.Equal(t, ask.want, w.do("GET", "/tasks/"+ask.id+"/events", nil, ask.with).status, ask.id)
	}
	assert.Equal(t, 200, w.do("HEAD", "/tasks/"+id+"/events", nil).status)
}

// TestDrainEndsEvents: a server that is about to stop ends its event streams.
func TestDrainEndsEvents(t *testing.T) {
	w := newWorld(t)
	f := w.follow(w.create(upload(nil)), "")
	f.next()
	w.api.Drain()
	rest, err := io.ReadAll(f.answer.Body)
	require.NoError(t, err)
	assert.Empty(t, bytes.TrimSpace(rest))
}
