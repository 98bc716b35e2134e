package doors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otograph/otograph/spec"
)

// Limits bound a connection; zero values select the defaults.
type Limits struct {
	Longest time.Duration // of a session; default 1 h
	Idle    time.Duration // without a message of the client; default 15 min
	Ping    time.Duration // between pings, and the longest wait for an answer; default 20 s
	Write   time.Duration // for one message to the client; default 30 s
	Queue   int           // messages that wait for the client; default 1024
	Rate    int           // messages that are read in a second; default 1000
}

// runner is a session between a connection and a door.
type runner struct {
	conn   Conn
	open   Opener
	limits Limits
	begun  time.Time
	cause  chan *EndError // holds the first reason for the end

	mu   sync.Mutex // for door, and the order of its messages
	door Door
	out  chan []byte // closed after the last message

	queued atomic.Int64 // bytes in out
	ended  atomic.Bool  // messages of the client no longer count

	acting  sync.Mutex // for the fields that actions use
	session Session    // nil before the first sound
	events  chan struct{}
	set     Settings
	seconds float64

	written chan struct{}
	last    atomic.Int64 // time of the client's last message, in ns since begun
	waiting atomic.Bool  // no Read runs, so no answer to a ping can come
}

// Serve runs a session until the connection is closed. set holds the terms
// until the first Configure. When ctx is done, the session ends with its cause,
// an *EndError, after the text of the sound so far.
func Serve(ctx context.Context, conn Conn, door Door, set Settings, open Opener, limits Limits) End {
	limits = Limits{
		Longest: cmp.Or(limits.Longest, time.Hour), Idle: cmp.Or(limits.Idle, 15*time.Minute), Ping: cmp.Or(limits.Ping, 20*time.Second),
		Write: cmp.Or(limits.Write, 30*time.Second), Queue: cmp.Or(limits.Queue, 1024), Rate: cmp.Or(limits.Rate, 1000),
	}
	r := &runner{
		conn: conn, door: door, open: open, limits: limits, begun: time.Now(), cause: make(chan *EndError, 1),
		out: make(chan []byte, limits.Queue), set: set, events: make(chan struct{}), written: make(chan struct{}),
	}
	reading, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	acting, stop := context.WithCancel(reading)
	var wait sync.WaitGroup
	wait.Go(func() { r.write(reading) })
	r.send(door.Begin)
	wait.Go(func() { r.receive(reading, acting) })
	wait.Go(func() { r.watch(acting) })
	why := r.wait(ctx)
	stop()
	if why.Reason == Gone || why.Reason == Slow {
		hangUp()
	}
	end := r.finish(why)
	hangUp()
	wait.Wait()
	return end
}

// Drain returns a context for Serve with the values of ctx, which ends with the
// reason Draining when stop does. Call release after Serve.
func Drain(ctx, stop context.Context) (running context.Context, release func()) {
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(stop, func() { end(&EndError{Draining, "the server restarts; connect again"}) })
	return running, func() {
		unwatch()
		end(nil)
	}
}

// wait returns the reason for the end.
func (r *runner) wait(ctx context.Context) (why *EndError) {
	longest := time.NewTimer(r.limits.Longest)
	defer longest.Stop()
	select {
	case why = <-r.cause:
		return why
	case <-ctx.Done():
		return Failure(context.Cause(ctx))
	case <-longest.C:
		return &EndError{Expired, fmt.Sprintf("Your session hit the maximum duration of %.0f minutes.", r.limits.Longest.Minutes())}
	}
}

// end ends the session for a reason, unless another came first.
func (r *runner) end(reason Reason, text string) {
	r.ended.Store(true)
	select {
	case r.cause <- &EndError{reason, text}:
	default:
	}
}

// maxQueued limits the messages that wait for the client, in bytes.
const maxQueued = 8 << 20

// send lets the door make messages and queues them.
func (r *runner) send(make func() [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range make() {
		if r.queued.Add(int64(len(m))) <= maxQueued {
			select {
			case r.out <- m:
				continue
			default:
			}
		}
		r.queued.Add(-int64(len(m)))
		r.end(Slow, "you read the events too slowly")
	}
}

// write writes the queued messages; written is closed after the last one.
func (r *runner) write(ctx context.Context) {
	defer close(r.written)
	for m := range r.out {
		r.queued.Add(-int64(len(m)))
		limit, cancel := context.WithTimeout(ctx, r.limits.Write)
		err := r.conn.Write(limit, m)
		cancel()
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				r.end(Slow, "you read the events too slowly")
			}
			r.end(Gone, "")
			return
		}
	}
}

// receive reads the client's messages and executes their actions.
func (r *runner) receive(reading, acting context.Context) {
	second, count := time.Now(), 0
	for {
		text, data, err := r.conn.Read(reading)
		if err != nil {
			if e, ok := errors.AsType[*EndError](err); ok {
				r.end(e.Reason, e.Text)
			}
			r.end(Gone, "")
			return
		}
		r.last.Store(int64(time.Since(r.begun)))
		r.waiting.Store(true)
		if err := r.act(acting, text, data); err != nil {
			e := Failure(err)
			r.end(e.Reason, e.Text)
		}
		if count++; count >= r.limits.Rate { // a flood is read at the limit's speed
			select {
			case <-time.After(time.Second - time.Since(second)):
			case <-acting.Done():
			}
		}
		if time.Since(second) >= time.Second {
			second, count = time.Now(), 0
		}
		r.waiting.Store(false)
	}
}

// act carries out a message.
func (r *runner) act(ctx context.Context, text bool, data []byte) error {
	r.acting.Lock()
	defer r.acting.Unlock()
	if r.ended.Load() {
		return nil
	}
	var actions []Action
	var wrong error
	r.send(func() (replies [][]byte) {
		actions, replies, wrong = r.door.Receive(text, data)
		return replies
	})
	for _, a := range actions {
		if err := r.do(ctx, a); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if wrong != nil {
		return &EndError{Invalid, wrong.Error()}
	}
	return nil
}

// do carries out an action.
func (r *runner) do(ctx context.Context, a Action) error {
	switch a := a.(type) {
	case Configure:
		r.set = a.Settings
		if r.session != nil {
			return r.session.Configure(ctx, a.Settings)
		}
	case Audio:
		if len(a) == 0 {
			return nil
		}
		if err := r.opened(ctx); err != nil {
			return err
		}
		r.seconds += r.set.Format.Seconds(int64(len(a)))
		return r.session.Write(ctx, a)
	case Commit:
		if r.session != nil {
			return r.session.Commit(ctx)
		}
		r.send(func() [][]byte { return r.door.Send(spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: -1}) })
	case Clear:
		if r.session != nil {
			return r.session.Clear(ctx)
		}
		r.send(func() [][]byte { return r.door.Send(spec.LiveEvent{Kind: spec.LiveCleared, Utterance: -1}) })
	case Finish:
		r.end(Finished, "")
	}
	return nil
}

// opened opens the session, unless it is open.
func (r *runner) opened(ctx context.Context) (err error) {
	if r.session != nil {
		return nil
	}
	s, err := r.open(context.WithoutCancel(ctx), r.set)
	if err != nil {
		return err
	}
	r.session = s
	go func() {
		defer close(r.events)
		for e, err := range s.Events() {
			if err != nil {
				e := Failure(err)
				r.end(e.Reason, e.Text)
				return
			}
			r.send(func() [][]byte { return r.door.Send(e) })
		}
	}()
	return nil
}

// watch ends the session of a client that is silent or gone.
func (r *runner) watch(ctx context.Context) {
	tick := time.NewTicker(r.limits.Ping)
	defer tick.Stop()
	for misses := 0; misses < 2; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if r.waiting.Load() {
			continue
		}
		if time.Since(r.begun)-time.Duration(r.last.Load()) >= r.limits.Idle {
			r.end(Idle, fmt.Sprintf("you have sent nothing for %s", r.limits.Idle))
			return
		}
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limits.Ping) // a ping that is canceled cuts the connection
		err := r.conn.Ping(limit)
		cancel()
		if misses++; err == nil || r.waiting.Load() {
			misses = 0
		}
	}
	r.end(Gone, "")
}

// finish ends the session's work, tells the client and closes the connection.
func (r *runner) finish(why *EndError) End {
	r.acting.Lock()
	r.ended.Store(true)
	r.acting.Unlock()
	end := End{Reason: why.Reason, Text: why.Text, Seconds: r.seconds}
	if r.session != nil {
		res, err := r.session.Close()
		<-r.events
		end.Result = res
		if err != nil && why.Reason == Finished {
			e := Failure(err)
			end.Reason, end.Text = e.Reason, e.Text
		}
	}
	end.Lasted = time.Since(r.begun)
	var code int
	var reason string
	r.send(func() (messages [][]byte) {
		messages, code, reason = r.door.End(end)
		return messages
	})
	close(r.out)
	select {
	case <-r.written:
	case <-time.After(r.limits.Write):
	}
	_ = r.conn.Close(code, reason)
	return end
}
