package sessions

import (
	"context"
	"encoding/json"
	"iter"
	"net"
	"time"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/spec"
)

// longestClose is the longest time for the text of the last sound.
const longestClose = 5 * time.Minute

// remote is a session in the process of the models.
type remote struct {
	conn   net.Conn
	counts *metrics.Live
	out    chan message
	events chan spec.LiveEvent
	done   chan struct{} // closed after the last message, or with the connection; the other fields can be read then
	result *spec.Result
	finals []spec.Segment // sentences of the events
	err    error
}

func (r *remote) write() {
	for out := json.NewEncoder(r.conn); ; {
		select {
		case m := <-r.out:
			if out.Encode(m) != nil {
				return // read reports it
			}
		case <-r.done:
			return
		}
	}
}

// read takes the messages of the process.
func (r *remote) read() {
	defer close(r.events)
	defer close(r.done)
	defer r.conn.Close()
	r.err = &doors.EndError{Reason: doors.Fault, Text: "the process that transcribes has ended; connect again"}
	for in := json.NewDecoder(r.conn); ; {
		var m message
		if in.Decode(&m) != nil {
			return
		}
		switch {
		case m.Event != nil:
			if m.Event.Kind == spec.LiveFinal {
				r.finals = append(r.finals, m.Event.Segments...)
			}
			r.counts.Event(*m.Event, m.Behind)
			r.events <- *m.Event
		case m.Failure != nil:
			r.err = m.Failure
			return
		default:
			r.result, r.err = (*spec.Result)(m.Result), nil
			return
		}
	}
}

// send queues a message, and waits while the process is too far behind. A
// session that has ended reports it at the end of its events.
func (r *remote) send(ctx context.Context, m message) error {
	select {
	case r.out <- m:
	case <-r.done:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Write implements doors.Session.
func (r *remote) Write(ctx context.Context, data []byte) error {
	return r.send(ctx, message{Audio: data})
}

// Configure implements doors.Session.
func (r *remote) Configure(ctx context.Context, set doors.Settings) error {
	return r.send(ctx, message{Settings: &set})
}

// Commit implements doors.Session.
func (r *remote) Commit(ctx context.Context) error { return r.send(ctx, message{Commit: true}) }

// Clear implements doors.Session.
func (r *remote) Clear(ctx context.Context) error { return r.send(ctx, message{Clear: true}) }

// Events implements doors.Session.
func (r *remote) Events() iter.Seq2[spec.LiveEvent, error] {
	return func(yield func(spec.LiveEvent, error) bool) {
		for e := range r.events {
			if !yield(e, nil) {
				return
			}
		}
		if r.err != nil {
			yield(spec.LiveEvent{}, r.err)
		}
	}
}

// Close implements doors.Session.
func (r *remote) Close() (*spec.Result, error) {
	limit, cancel := context.WithTimeout(context.Background(), longestClose)
	defer cancel()
	defer context.AfterFunc(limit, func() { _ = r.conn.Close() })()
	_ = r.send(limit, message{End: true})
	<-r.done
	return r.result, r.err
}
