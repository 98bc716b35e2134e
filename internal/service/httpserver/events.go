package httpserver

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

const (
	// followLimit ends a stream: followers must authenticate again.
	followLimit = time.Hour
	// followRetry is a client's wait before it reconnects to a stream.
	followRetry = time.Second
)

// taskState is the data of an event of GET /tasks/:id/events.
type taskState struct {
	TaskID       string       `json:"task_id"`
	Status       tasks.Status `json:"status"`
	Final        bool         `json:"final"`
	Stage        *spec.Stage  `json:"stage"`
	Percent      *int         `json:"percent"`
	ErrorMessage *string      `json:"error_message"`
	UpdatedAt    string       `json:"updated_at"`
	FinishedAt   *string      `json:"finished_at"`
}

func stateOf(s tasks.Snapshot) taskState {
	out := taskState{TaskID: s.TaskID, Status: s.Status, Final: s.Final, UpdatedAt: stamp(s.UpdatedAt)}
	percent := min(99, int(math.Round(s.Fraction*100))) // only the state reports the end
	if s.Stage != "" {
		out.Stage, out.Percent = &s.Stage, &percent
	}
	if s.Status == tasks.StatusDone {
		percent = 100
		out.Percent = &percent
	}
	if s.Error != "" {
		out.ErrorMessage = &s.Error
	}
	if s.Final {
		out.FinishedAt = stampOrNull(&s.FinishedAt)
	}
	return out
}

// id returns the id of the event; equal states have equal ids on every server.
func (s taskState) id() string {
	parts := []string{string(s.Status), s.UpdatedAt}
	if s.Stage != nil {
		parts = append(parts, string(*s.Stage), strconv.Itoa(*s.Percent))
	}
	return strings.Join(parts, "/")
}

// segmentEvent is the data of an event with a sentence of a running task.
type segmentEvent struct {
	TaskID  string  `json:"task_id"`
	Attempt int64   `json:"attempt"`
	Index   int     `json:"index"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text"`
}

// cursor marks the sentences of a running task that have been sent.
type cursor struct {
	attempt int64
	sent    int
}

// advance returns the sentences that have not been sent, and the number of the
// first one. A new attempt sends all of its sentences again.
func (c *cursor) advance(live *tasks.LiveSegments) (first int, segments []spec.Segment) {
	if live == nil || live.Attempt < c.attempt {
		return c.sent, nil
	}
	if live.Attempt > c.attempt {
		c.attempt, c.sent = live.Attempt, 0
	}
	if len(live.Segments) < c.sent { // an older query
		return c.sent, nil
	}
	first = c.sent
	c.sent = len(live.Segments)
	return first, live.Segments[first:]
}

// getEvents handles GET /tasks/:id/events, an addition to the specification:
// the task's state now and after every change, as server-sent events, until it
// is final. Nothing is buffered for a client: a slow client misses states
// between the last one it has read and the newest.
func (s *Server) getEvents(w http.ResponseWriter, r *request, id string) error {
	states, err := s.cfg.Tasks.Follow(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		eventStreamHeader(w)
		return nil
	}
	defer s.cfg.Metrics.Waiting()()
	seen := r.Header.Get("Last-Event-ID")
	var sent cursor
	running := false        // in the last state
	end := 0.0              // of the last sentence that was sent
	var stream *eventStream // nil before the response begins
	begin := func() error {
		if stream != nil {
			return nil
		}
		stream = newEventStream(w)
		return stream.write("retry: " + strconv.FormatInt(followRetry.Milliseconds(), 10) + "\n\n")
	}
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	limit := time.NewTimer(followLimit)
	defer limit.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.draining.Done():
			return nil // the client reconnects to another server
		case <-limit.C:
			return nil
		case <-beat.C:
			if err = begin(); err == nil {
				err = stream.beat()
			}
		case snapshot := <-states:
			if snapshot.Gone {
				if stream == nil {
					return notFound("the task does not exist")
				}
				return nil
			}
			state := stateOf(snapshot)
			if stream == nil && state.Final && state.id() == seen { // the client has received the end and need not reconnect
				w.WriteHeader(http.StatusNoContent)
				return nil
			}
			if err = begin(); err != nil {
				return nil
			}
			first, news := sent.advance(snapshot.Live)
			if running && state.Status == tasks.StatusDone { // the sentences after the last report
				if result, err := s.resultOf(r, id); err == nil {
					news = slices.DeleteFunc(result.Segments, func(seg spec.Segment) bool { return seg.Start+seg.End <= 2*end })
				}
			}
			running = !state.Final
			for i, segment := range news {
				end = segment.End
				event := segmentEvent{id, max(sent.attempt, 1), first + i, segment.Start, segment.End, segment.Text}
				if err = stream.send("segment", "", event); err != nil {
					return nil
				}
			}
			if state.id() != seen {
				seen = state.id()
				err = stream.send("task", seen, state)
			}
			if state.Final {
				return nil
			}
		}
		if err != nil {
			return nil // the client has gone
		}
	}
}

// streamBeat is the pause between two comments of an idle stream: proxies close
// connections that are silent for a minute.
const streamBeat = 15 * time.Second

// eventStream writes server-sent events (WHATWG HTML, section 9.2).
type eventStream struct{ w http.ResponseWriter }

func newEventStream(w http.ResponseWriter) *eventStream {
	eventStreamHeader(w)
	w.WriteHeader(http.StatusOK)
	return &eventStream{w}
}

func eventStreamHeader(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx forwards events one by one
}

// send writes one event with v as its data. An empty name or id is omitted.
func (e *eventStream) send(name, id string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return e.write(name + id + "data: " + string(data) + "\n\n")
}

// beat writes a comment, which clients ignore.
func (e *eventStream) beat() error { return e.write(": still working\n\n") }

func (e *eventStream) write(text string) error {
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}
