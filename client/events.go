package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/backoff"
)

// Event is a value of Follow: a task's state, or a sentence of it.
type Event struct {
	State   *State
	Segment *Segment
}

// State is the progress of a task.
type State struct {
	TaskID       string     `json:"task_id"`
	Status       Status     `json:"status"`
	Final        bool       `json:"final"`   // the state will not change any more
	Stage        *string    `json:"stage"`   // nil while the task waits
	Percent      *int       `json:"percent"` // nil whenever Stage is nil; 100 when done
	ErrorMessage *string    `json:"error_message"`
	UpdatedAt    time.Time  `json:"updated_at"`
	FinishedAt   *time.Time `json:"finished_at"`
}

// Segment is a sentence of a running task. A greater Attempt is a restart: the
// sentences of earlier attempts are no longer valid.
type Segment struct {
	TaskID  string  `json:"task_id"`
	Attempt int64   `json:"attempt"`
	Index   int     `json:"index"`
	Start   float64 `json:"start"` // seconds
	End     float64 `json:"end"`
	Text    string  `json:"text"`
}

const (
	// followPause is the delay before Follow reconnects to a broken stream.
	followPause = time.Second
	// reconnectLimit is how long Follow tries an unreachable service.
	reconnectLimit = 2 * time.Minute
	// maxEmptyStreams is the maximum number of consecutive streams without a
	// line; the service begins each stream with one.
	maxEmptyStreams = 30
	// maxEvent bounds a line of a stream, in bytes.
	maxEvent = 1 << 20
)

// Follow returns the states of a task as they arrive, beginning with the
// current one, and its sentences, until the state is final. An interrupted
// stream is resumed, for two minutes even if the service cannot be reached, and
// up to 30 times in a row if it is empty. A state may be skipped; a sentence is
// returned once per attempt. An error is always the last value.
func (c *Client) Follow(ctx context.Context, id string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := follower{client: c, id: id, yield: yield}
		for {
			err := f.stream(ctx)
			switch {
			case f.over:
				return
			case err != nil && !f.passing(ctx, err):
				yield(Event{}, err)
				return
			case f.emptyStreams >= maxEmptyStreams:
				yield(Event{}, fmt.Errorf("client: events of task %s: expected server-sent events, found none in %d answers in a row; does a proxy hold them back?", id, f.emptyStreams))
				return
			case !backoff.Sleep(ctx, followPause):
				yield(Event{}, fmt.Errorf("client: task %s is not final: %w", id, ctx.Err()))
				return
			}
		}
	}
}

type follower struct {
	client   *Client
	id       string
	yield    func(Event, error) bool
	last     string    // id of the last event
	answered time.Time // end of the last response; zero before the first
	over     bool      // the final state was yielded, or the caller stopped
	// emptyStreams counts streams in a row without an event stream's line.
	emptyStreams int
	// attempt and next identify the next sentence to yield.
	attempt int64
	next    int
}

// passing reports whether err may be temporary for a service that has answered
// before: a failed network, or a proxy that did not reach the service.
func (f *follower) passing(ctx context.Context, err error) bool {
	var network *url.Error
	var failed *Error
	away := errors.As(err, &network) || errors.As(err, &failed) && failed.Status >= http.StatusBadGateway && failed.Status <= http.StatusGatewayTimeout
	return away && ctx.Err() == nil && !f.answered.IsZero() && time.Since(f.answered) < reconnectLimit
}

// eventFields are the first words of an event stream's lines; "" is a comment.
var eventFields = []string{"", "event", "id", "data", "retry"}

// stream reads one response. It returns nil if the stream breaks off.
func (f *follower) stream(ctx context.Context) error {
	header := http.Header{"Accept": {"text/event-stream"}}
	if f.last != "" {
		header.Set("Last-Event-ID", f.last)
	}
	body, err := f.client.open(ctx, taskPath(f.id, "events"), header)
	if err != nil {
		return err
	}
	if body == nil { // the state is final, and the caller has it
		f.over = true
		return nil
	}
	defer func() {
		body.Close()
		f.answered = time.Now()
	}()
	f.emptyStreams++
	var name, id, data string
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	for !f.over && lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		if slices.Contains(eventFields, field) && lines.Text() != "" {
			f.emptyStreams = 0
		}
		switch {
		case lines.Text() == "":
			if err := f.event(name, id, data); err != nil {
				return err
			}
			name, id, data = "", "", ""
		case field == "event":
			name = value
		case field == "id":
			id = value
		case field == "data":
			data += value
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("client: events of task %s: a line is longer than %d bytes", f.id, maxEvent)
	}
	return nil // any other error interrupts the stream
}

// event handles one event; unknown events are ignored.
func (f *follower) event(name, id, data string) error {
	if id != "" {
		f.last = id
	}
	var e Event
	switch name {
	case "task":
		e.State = &State{}
		if err := f.decode(data, e.State); err != nil {
			return err
		}
		f.over = e.State.Final
	case "segment":
		e.Segment = &Segment{}
		if err := f.decode(data, e.Segment); err != nil {
			return err
		}
		if e.Segment.Attempt < f.attempt || e.Segment.Attempt == f.attempt && e.Segment.Index < f.next {
			return nil // already yielded before the stream broke off
		}
		f.attempt, f.next = e.Segment.Attempt, e.Segment.Index+1
	default:
		return nil
	}
	if !f.yield(e, nil) {
		f.over = true
	}
	return nil
}

func (f *follower) decode(data string, into any) error {
	if err := json.Unmarshal([]byte(data), into); err != nil {
		return fmt.Errorf("client: event of task %s: %w", f.id, err)
	}
	return nil
}
