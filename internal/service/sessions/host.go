package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// message goes between the server and the process of the models, on a connection
// for each session, as JSON. One of the other fields than Behind is set.
type message struct {
	Settings           *doors.Settings `json:",omitempty"` // first, and when they change
	Audio              []byte          `json:",omitempty"`
	Commit, Clear, End bool            `json:",omitzero"`
	Event              *spec.LiveEvent `json:",omitempty"`
	Behind             float64         `json:",omitzero"`  // of the session at an Event
	Result             *fields         `json:",omitempty"` // last, or
	Failure            *doors.EndError `json:",omitempty"`
}

// fields has all fields of a result in JSON.
type fields spec.Result

// Engine is a live session with the models, as *live.Session is one.
type Engine interface {
	Write(data []byte) error
	Behind() float64 // seconds
	Configure(s doors.Settings) error
	Commit() error
	Clear() error
	Events() iter.Seq2[spec.LiveEvent, error]
	Close() (*spec.Result, error)
}

// mostBehind is how many seconds a session may be behind before it takes no
// more sound.
const mostBehind = 30

// Host serves the sessions of a server in the process of the models, until ctx
// is done. open opens one; its context ends with the connection.
func Host(ctx context.Context, l net.Listener, open func(context.Context, doors.Settings) (Engine, error), log *slog.Logger) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		wait.Go(func() {
			defer conn.Close()
			work, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			if err := host(work, cancel, conn, open); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "live session failed", "error", err)
			}
		})
	}
}

// host serves one session. cancel ends its work.
func host(ctx context.Context, cancel func(), conn net.Conn, open func(context.Context, doors.Settings) (Engine, error)) error {
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	var first message
	if err := in.Decode(&first); err != nil || first.Settings == nil {
		return err
	}
	e, err := open(ctx, *first.Settings)
	if err != nil {
		return errors.Join(err, out.Encode(message{Failure: failure(err)}))
	}
	var events sync.WaitGroup
	events.Go(func() {
		for event, err := range e.Events() {
			if err != nil || out.Encode(message{Event: &event, Behind: e.Behind()}) != nil {
				cancel() // Close returns the session's error
				return
			}
		}
	})
	gone := take(ctx, in, e)
	if gone != nil {
		cancel()
	}
	res, err := e.Close()
	events.Wait()
	switch {
	case gone != nil:
		return gone
	case err != nil:
		return errors.Join(err, out.Encode(message{Failure: failure(err)}))
	}
	return out.Encode(message{Result: (*fields)(res)})
}

// failure returns the form of an error for the server.
func failure(err error) *doors.EndError {
	if spec.IsPermanent(err) || errors.As(err, new(*spec.OptionError)) {
		return &doors.EndError{Reason: doors.Invalid, Text: err.Error()}
	}
	return doors.Failure(err)
}

// take executes the server's messages until the end of the sound. It returns an
// error if that end did not come; Close returns errors of the session.
func take(ctx context.Context, in *json.Decoder, e Engine) error {
	for failed := error(nil); failed == nil; {
		var m message
		if err := in.Decode(&m); err != nil || m.End {
			return err
		}
		switch {
		case m.Settings != nil:
			failed = e.Configure(*m.Settings)
		case m.Commit:
			failed = e.Commit()
		case m.Clear:
			failed = e.Clear()
		default:
			failed = e.Write(m.Audio)
			for failed == nil && e.Behind() > mostBehind && ctx.Err() == nil {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
	return nil
}
