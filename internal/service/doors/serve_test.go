package doors

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// pipe is a Conn whose client is a test.
type pipe struct {
	in     chan string // of the client
	out    chan string // to the client
	mute   bool        // answers no ping
	cut    bool        // a ping was canceled, which cuts a WebSocket
	code   int
	reason string
}

func newPipe() *pipe { return &pipe{in: make(chan string), out: make(chan string)} }

func (p *pipe) Read(ctx context.Context) (bool, []byte, error) {
	select {
	case m, ok := <-p.in:
		if !ok {
			return false, nil, io.EOF
		}
		return m[0] != '.', []byte(m), nil
	case <-ctx.Done():
		return false, nil, ctx.Err()
	}
}

func (p *pipe) Write(ctx context.Context, data []byte) error {
	select {
	case p.out <- string(data):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Ping(ctx context.Context) error {
	if p.mute {
		<-ctx.Done()
		p.cut = errors.Is(ctx.Err(), context.Canceled)
		return ctx.Err()
	}
	return nil
}

func (p *pipe) Close(code int, reason string) error {
	p.code, p.reason = code, reason
	return nil
}

// plain is a door whose messages are words.
type plain struct{}

func (plain) Begin() [][]byte { return [][]byte{[]byte("hello")} }

func (plain) Receive(text bool, data []byte) ([]Action, [][]byte, error) {
	if !text {
		return []Action{Audio(data)}, nil, nil
	}
	switch string(data) {
	case "commit":
		return []Action{Commit{}}, nil, nil
	case "clear":
		return []Action{Clear{}}, [][]byte{[]byte("clearing")}, nil
	case "finish":
		return []Action{Finish{}}, nil, nil
	case "manual":
		return []Action{Configure{Settings{Manual: true}}}, nil, nil
	}
	return nil, nil, errors.New("not understood")
}

func (plain) Send(e spec.LiveEvent) [][]byte { return [][]byte{[]byte(string(e.Kind) + " " + e.Text)} }

func (plain) End(e End) ([][]byte, int, string) {
	return [][]byte{[]byte("bye")}, e.Reason.Code(), e.Text
}

// script is a Session that reports the calls of its methods.
type script struct {
	events chan spec.LiveEvent
	done   chan struct{}
	failed chan error
	full   bool // Write waits
	closed int
}

func (s *script) say(kind spec.LiveKind, text string) {
	select {
	case s.events <- spec.LiveEvent{Kind: kind, Text: text}:
	case <-s.done:
	}
}

func (s *script) Write(ctx context.Context, data []byte) error {
	if s.full {
		<-ctx.Done()
		return ctx.Err()
	}
	s.say(spec.LivePartial, string(data))
	return nil
}

func (s *script) Configure(context.Context, Settings) error { s.say("configured", ""); return nil }
func (s *script) Commit(context.Context) error              { s.say(spec.LiveCommitted, ""); return nil }

func (s *script) Clear(context.Context) error { s.say(spec.LiveCleared, ""); return nil }

func (s *script) Events() iter.Seq2[spec.LiveEvent, error] {
	return func(yield func(spec.LiveEvent, error) bool) {
		for {
			select {
			case e := <-s.events:
				if !yield(e, nil) {
					return
				}
			case <-s.done:
				return
			case err := <-s.failed:
				yield(spec.LiveEvent{}, err)
				return
			}
		}
	}
}

func (s *script) Close() (*spec.Result, error) {
	s.closed++
	select {
	case s.events <- spec.LiveEvent{Kind: spec.LiveFinal, Text: "rest"}:
	case <-time.After(time.Millisecond): // the events have ended
	}
	close(s.done)
	return &spec.Result{Language: "en"}, nil
}

// start runs a session in a bubble; the function returns its end.
func start(ctx context.Context, p *pipe, s *script, refused error) func() End {
	end := make(chan End, 1)
	s.events, s.done, s.failed = make(chan spec.LiveEvent), make(chan struct{}), make(chan error, 1)
	open := func(context.Context, Settings) (Session, error) { return s, refused }
	go func() {
		end <- Serve(ctx, p, plain{}, Settings{Format: Format{Encoding: "mulaw", Rate: 8000, Channels: 1}}, open, Limits{Queue: 32, Rate: 10})
	}()
	return func() End { return <-end }
}

// A whole session: requests are answered in order, and the text of the last
// sound comes before the end.
func TestOrderlySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := newPipe(), &script{}
		end := start(t.Context(), p, s, nil)
		for _, m := range []struct{ say, get string }{
			{"", "hello"}, {"commit", "committed "}, {"clear", "clearing"}, {"", "cleared "}, {".ab", "partial .ab"}, {"manual", "configured "}, {"commit", "committed "}, {"finish", "final rest"}, {"", "bye"},
		} {
			if m.say != "" {
				p.in <- m.say
			}
			assert.Equal(t, m.get, <-p.out)
		}
		e := end()
		assert.Equal(t, Finished, e.Reason)
		assert.InDelta(t, 3.0/8000, e.Seconds, 1e-9)
		assert.Equal(t, "en", e.Result.Language)
		assert.Equal(t, 1000, p.code)
		assert.Equal(t, 1, s.closed)
	})
}

// Every reason ends the session once, with its code, its text and the text of
// the sound so far.
func TestEveryReasonEndsTheSessionOnce(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		do      func(p *pipe, s *script, cancel context.CancelCauseFunc)
		refused error
		mute    bool
		deaf    bool // reads nothing after hello
		want    Reason
		code    int
	}{
		"gone":     {do: func(p *pipe, _ *script, _ context.CancelCauseFunc) { close(p.in) }, want: Gone, code: 1000},
		"invalid":  {do: func(p *pipe, _ *script, _ context.CancelCauseFunc) { p.in <- "what" }, want: Invalid, code: 1008},
		"fault":    {do: func(_ *pipe, s *script, _ context.CancelCauseFunc) { s.failed <- errors.New("secret") }, want: Fault, code: 1011},
		"unpaid":   {do: func(_ *pipe, s *script, _ context.CancelCauseFunc) { s.failed <- &EndError{Unpaid, "no money"} }, want: Unpaid, code: 1008},
		"draining": {do: func(_ *pipe, _ *script, c context.CancelCauseFunc) { c(&EndError{Draining, "stops"}) }, want: Draining, code: 1012},
		"draining, in a ping": {do: func(_ *pipe, _ *script, c context.CancelCauseFunc) {
			time.Sleep(20*time.Second + ms)
			c(&EndError{Draining, "stops"})
		}, mute: true, want: Draining, code: 1012},
		"full":      {refused: &EndError{Full, "full"}, want: Full, code: 1013},
		"idle":      {do: func(*pipe, *script, context.CancelCauseFunc) { time.Sleep(20 * time.Minute) }, want: Idle, code: 1001},
		"no answer": {do: func(*pipe, *script, context.CancelCauseFunc) {}, mute: true, want: Gone, code: 1000},
		"slow": {do: func(_ *pipe, s *script, _ context.CancelCauseFunc) {
			for range 200 {
				s.say(spec.LivePartial, "ten letters")
			}
		}, deaf: true, want: Slow, code: 1008},
		"slow, few but large": {do: func(_ *pipe, s *script, _ context.CancelCauseFunc) {
			for range 9 {
				s.say(spec.LivePartial, strings.Repeat("x", 1<<20))
			}
		}, deaf: true, want: Slow, code: 1008},
		"expired": {do: func(p *pipe, _ *script, _ context.CancelCauseFunc) {
			for range 61 {
				time.Sleep(time.Minute)
				select {
				case p.in <- "manual":
				case <-time.After(ms):
				}
			}
		}, want: Expired, code: 1001},
		"behind": {do: func(p *pipe, s *script, c context.CancelCauseFunc) {
			s.full = true
			p.in <- ".more"
			time.Sleep(30 * time.Minute) // the client is not to blame
			c(&EndError{Draining, "stops"})
		}, want: Draining, code: 1012},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := newPipe(), &script{}
				p.mute = test.mute
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				end := start(ctx, p, s, test.refused)
				require.Equal(t, "hello", <-p.out)
				p.in <- ".a"
				synctest.Wait()
				if !test.deaf {
					go func() {
						for range p.out {
						}
					}()
				}
				if test.do != nil {
					go test.do(p, s, cancel)
				}
				e := end()
				assert.Equal(t, test.want, e.Reason)
				assert.Equal(t, test.code, p.code)
				assert.False(t, p.cut)
				assert.NotContains(t, p.reason, "secret")
				if test.refused == nil {
					assert.Equal(t, 1, s.closed)
					assert.Equal(t, "en", e.Result.Language)
				}
				time.Sleep(time.Hour)
				close(p.out)
			})
		})
	}
}

// A flood of messages is read at the limit's speed, and no message is lost.
func TestFloodIsReadAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := newPipe(), &script{}
		end := start(t.Context(), p, s, nil)
		go func() {
			for range p.out {
			}
		}()
		begun := time.Now()
		for range 100 {
			p.in <- ".1234567"
		}
		p.in <- "finish"
		e := end()
		assert.InDelta(t, 100*8.0/8000, e.Seconds, 1e-9)
		assert.GreaterOrEqual(t, time.Since(begun), 10*time.Second)
		close(p.out)
	})
}

// After the end of a session, messages that the client has already sent have no effect.
func TestNothingCountsAfterTheEnd(t *testing.T) {
	for _, end := range []string{"finish", "what"} {
		p := &pipe{in: make(chan string, 3)}
		for _, m := range []string{end, ".late", "commit"} {
			p.in <- m
		}
		close(p.in)
		r := &runner{conn: p, door: plain{}, limits: Limits{Rate: 10}, begun: time.Now(), cause: make(chan *EndError, 1), out: make(chan []byte, 1)}
		r.receive(t.Context(), t.Context())
		assert.Zero(t, r.seconds, end)
		assert.Empty(t, r.out, end)
	}
}

func TestShorten(t *testing.T) {
	long := ""
	for range 100 {
		long += "ü"
	}
	assert.Equal(t, long[:122], shorten(long))
	assert.Equal(t, "short", shorten("short"))
}
