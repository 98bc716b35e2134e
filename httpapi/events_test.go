package httpapi

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

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/tasks"
	"github.com/otograph/otograph/tasks/queue"
)

// follower reads the events of a task as they come.
type follower struct {
	t      testing.TB
	answer *http.Response
	lines  *bufio.Scanner
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
	return &follower{w.t, resp, bufio.NewScanner(resp.Body)}
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
			doc, err := contract()
			require.NoError(f.t, err)
			var raw any
			require.NoError(f.t, json.Unmarshal([]byte(value), &raw))
			require.NoError(f.t, doc.Components.Schemas["TaskState"].Value.VisitJSON(raw))
			require.NoError(f.t, json.Unmarshal([]byte(value), &state))
			require.Equal(f.t, "task", name)
			require.NotEmpty(f.t, id)
			return id, state, true
		}
	}
	require.NoError(f.t, f.lines.Err())
	return "", state, false
}

// claim takes the next task as a member of the queue.
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

var shortResult = tasks.Outcome{Result: []byte(`{"segments":[]}`), Tier: spec.TierStandard, Seconds: 2}

// TestEventsFollowATaskToItsEnd: each state and each report reaches whoever
// follows, in order, and the stream ends with the task.
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
			require.NoError(t, w.tasks.Report(t.Context(), c, spec.StageTranscribe, 0.42))
			var last string
			for state.Stage == nil {
				last, state, ok = f.next()
				require.True(t, ok)
			}
			assert.Equal(t, []any{spec.StageTranscribe, 42, false}, []any{*state.Stage, *state.Percent, state.Final})

			again := w.follow(id, last) // has heard of this, and hears of the end alone
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
			assert.True(t, ok && state.Final, "a task that is final has one event")
			assert.Equal(t, 204, w.do("GET", "/tasks/"+id+"/events", nil, with("Last-Event-Id", last)).status, "nothing more is to be heard")
		})
	}
}

// TestEventsTellOfFailuresAndDeletion: a retry and a refusal are states too, and
// a task that is deleted ends the stream.
func TestEventsTellOfFailuresAndDeletion(t *testing.T) {
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

// TestEventsAreTheOwners: another account's task, one that does not exist and an
// id that is none are refused as everywhere.
func TestEventsAreTheOwners(t *testing.T) {
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

// TestDrainEndsEvents: a server that is about to stop sends its followers away.
func TestDrainEndsEvents(t *testing.T) {
	w := newWorld(t)
	f := w.follow(w.create(upload(nil)), "")
	f.next()
	w.api.Drain()
	rest, err := io.ReadAll(f.answer.Body)
	require.NoError(t, err)
	assert.Empty(t, bytes.TrimSpace(rest))
}
