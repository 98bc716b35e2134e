package sessions

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

var telephone = doors.Format{Encoding: "mulaw", Rate: 8000, Channels: 1}

// speaker is an Engine: each Commit makes a sentence that ends with the sound.
type speaker struct {
	mu      sync.Mutex
	more    *sync.Cond
	seconds float64
	events  []spec.LiveEvent
	closed  bool
	whole   bool // with the events around a sentence
}

func (s *speaker) Write(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seconds += telephone.Seconds(int64(len(data)))
	return nil
}

func (s *speaker) Behind() float64                { return 0 }
func (s *speaker) Configure(doors.Settings) error { return nil }
func (s *speaker) Clear() error                   { return nil }

func (s *speaker) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole {
		s.events = append(s.events, spec.LiveEvent{Kind: spec.LiveSpeechStarted}, spec.LiveEvent{Kind: spec.LivePartial, Text: "wo"}, spec.LiveEvent{Kind: spec.LiveSpeechStopped, End: s.seconds}, spec.LiveEvent{Kind: spec.LiveCommitted, Start: s.seconds})
	}
	s.events = append(s.events, spec.LiveEvent{Kind: spec.LiveFinal, Text: "word", End: s.seconds, Segments: []spec.Segment{{Text: "word", End: s.seconds}}})
	s.more.Broadcast()
	return nil
}

func (s *speaker) Events() iter.Seq2[spec.LiveEvent, error] {
	return func(yield func(spec.LiveEvent, error) bool) {
		for sent := 0; ; sent++ {
			s.mu.Lock()
			for sent == len(s.events) && !s.closed {
				s.more.Wait()
			}
			done := sent == len(s.events)
			s.mu.Unlock()
			if done || !yield(s.events[sent], nil) {
				return
			}
		}
	}
}

func (s *speaker) Close() (*spec.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.more.Broadcast()
	res := &spec.Result{AudioDuration: s.seconds, Tier: spec.TierStandard, Language: "en", Ran: spec.Capabilities{ASR: true}}
	for _, e := range s.events {
		res.Segments = append(res.Segments, e.Segments...)
	}
	return res, nil
}

// world is a service with live sessions.
type world struct {
	*taskstest.Fixture
	*Sessions
	kill func() // ends the process of the models, and waits for its end
}

func feed(f doors.Format) (Feed, error) { return audio.NewFeed(f.Encoding, f.Rate, f.Channels) }

func open(t *testing.T, d *db.DB, options ...taskstest.Option) *world {
	f := taskstest.New(t, d, options...)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Host(ctx, l, func(_ context.Context, set doors.Settings) (Engine, error) {
			if set.Silence > 10 {
				return nil, &spec.OptionError{Field: "silence", Reason: "too long"}
			}
			s := &speaker{whole: set.Manual}
			s.more = sync.NewCond(&s.mu)
			return s, nil
		}, slog.New(slog.DiscardHandler))
	}()
	kill := sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	t.Cleanup(kill)
	return &world{f, New(Config{Tasks: f.Service, Permit: f.Accounts.Permit, Feed: feed, Socket: socket, Most: 2, Logger: slog.New(slog.DiscardHandler), Counts: metrics.New(nil).Live()}), kill}
}

func (w *world) begin(t *testing.T, o Order) doors.Session {
	t.Helper()
	if o.Account == "" {
		o.Account = w.Account
	}
	s, err := w.Open(t.Context(), o, doors.Settings{Format: telephone, Options: spec.Options{EnableDiarize: new(false), EnableAudioEvents: new(false)}})
	require.NoError(t, err)
	return s
}

// speak writes some seconds of sound in uneven pieces.
func speak(t *testing.T, s doors.Session, seconds int) error {
	t.Helper()
	for data := make([]byte, 8000*seconds); len(data) > 0; {
		n := min(70_001, len(data))
		if err := s.Write(t.Context(), data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// listen reads the events: next returns one, ended the error at the end.
func listen(s doors.Session) (next func() spec.LiveEvent, ended <-chan error) {
	events, end := make(chan spec.LiveEvent, 64), make(chan error, 1)
	go func() {
		for e, err := range s.Events() {
			if err != nil {
				end <- err
				return
			}
			events <- e
		}
		end <- nil
	}()
	return func() spec.LiveEvent { return <-events }, end
}

func reason(t *testing.T, err error) doors.Reason {
	t.Helper()
	var e *doors.EndError
	require.ErrorAs(t, err, &e)
	return e.Reason
}

func (w *world) balance(t *testing.T, account string) billing.Money {
	t.Helper()
	a, err := w.Billing().View(t.Context(), account)
	require.NoError(t, err)
	return a.Balance
}

// A minute costs 0.0100. A session is charged once, for its started minutes;
// its task, which no worker gets, is kept if the client requests it.
func TestSessionsAreTasks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := open(t, d)
		for _, keep := range []bool{true, false} {
			before := w.balance(t, w.Account)
			o := Order{ID: tasks.NewID(), Store: keep}
			s := w.begin(t, o)
			next, ended := listen(s)
			require.NoError(t, speak(t, s, 60))
			require.NoError(t, s.Commit(t.Context()))
			assert.Equal(t, 60.0, next().End)
			assert.Equal(t, tasks.StatusProcessing, w.Row(o.ID).Status)
			assert.Nil(t, w.Take(), "no worker claims it")
			_, err := w.Withdraw(t.Context(), w.Account, o.ID)
			require.ErrorIs(t, err, tasks.ErrTextDelivered)
			require.NoError(t, speak(t, s, 1))
			res, err := s.Close()
			require.NoError(t, err)
			require.NoError(t, <-ended)
			assert.InDelta(t, 61, res.AudioDuration, 1e-9)
			assert.Equal(t, before-200, w.balance(t, w.Account))
			w.Exact()
			if !keep {
				assert.Zero(t, w.Count("SELECT COUNT(*) FROM tasks WHERE id = $1", o.ID))
				continue
			}
			result, bill := w.ReadResult(o.ID)
			assert.Equal(t, "word", result.Segments[0].Text)
			assert.Equal(t, billing.Money(200), bill.Amount)
		}
		assert.Empty(t, w.Orphans())
		assert.Zero(t, w.open.Load())
	})
}

// A session costs the price of live sessions, if there is one: also the last
// minute that the balance pays for, and the sentences delivered before the
// process of the models died.
func TestPriceOfLive(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := open(t, d)
		_, err := w.Billing().SetPrices(t.Context(), billing.Prices{Standard: 60_000, Optimized: 60_000, Live: new(billing.Money(21))}, time.Time{}) // 0.0021 an hour
		require.NoError(t, err)
		account := w.NewAccount("thrifty", 3)
		for _, end := range []string{"orderly", "unpaid", "dead"} {
			if end == "dead" {
				account = w.Account
			}
			before := w.balance(t, account)
			o := Order{ID: tasks.NewID(), Account: account, Store: true}
			s := w.begin(t, o)
			next, ended := listen(s)
			minutes, charged := 3, billing.Money(1) // 21 / 60 × 3 = 1.05
			require.NoError(t, speak(t, s, 60*minutes))
			require.NoError(t, s.Commit(t.Context()))
			next()
			switch end {
			case "unpaid":
				charged = 2
				assert.Equal(t, doors.Unpaid, reason(t, speak(t, s, 100*60))) // 7 min cost 2.45, 8 min 2.8
			case "dead":
				w.kill()
				<-ended
			}
			_, _ = s.Close()
			_, bill := w.ReadResult(o.ID)
			assert.Equal(t, charged, bill.Amount, end)
			assert.Equal(t, billing.Money(21), bill.Detail.BasePricePerHour)
			assert.Equal(t, before-charged, w.balance(t, account))
			w.Exact()
		}
		u, err := w.Usage(t.Context(), tasks.UsageQuery{Account: w.Account, Zone: time.UTC, By: []string{"kind"}})
		require.NoError(t, err)
		assert.Equal(t, "asr+live", u.Rows[0].Kind)
		assert.Equal(t, billing.Money(1), u.Total.Amount)
	})
}

// A session takes a day of sound at most. It ends soon after an operator has
// canceled it, even if sound costs nothing.
func TestLongSessions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := open(t, d)
		_, err := w.Billing().SetPrices(t.Context(), billing.Prices{}, time.Time{})
		require.NoError(t, err)
		for canceled, want := range map[bool]doors.Reason{false: doors.Expired, true: doors.Canceled} {
			o := Order{ID: tasks.NewID()}
			s := w.begin(t, o)
			_, ended := listen(s)
			if canceled {
				require.NoError(t, speak(t, s, 1))
				_, err := w.Cancel(t.Context(), o.ID)
				require.NoError(t, err)
			} else {
				s.(*session).seconds, s.(*session).held = 86_370, 86_400
			}
			assert.Equal(t, want, reason(t, speak(t, s, 61)))
			_, err := s.Close()
			assert.Equal(t, canceled, err != nil)
			require.NoError(t, <-ended)
		}
	})
}

// Exactly the minutes that the balance pays for are accepted and charged.
func TestBalanceUsedUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := open(t, d)
		account := w.NewAccount("poor", 250)
		s := w.begin(t, Order{ID: tasks.NewID(), Account: account, Store: true})
		_, ended := listen(s)
		var err error
		for range 1000 { // sums of 0.2 s are not exact
			if err = s.Write(t.Context(), make([]byte, 1600)); err != nil {
				break
			}
		}
		assert.Equal(t, doors.Unpaid, reason(t, err))
		res, err := s.Close()
		require.NoError(t, err)
		require.NoError(t, <-ended)
		assert.InDelta(t, 120, res.AudioDuration, 1e-9)
		assert.Equal(t, billing.Money(50), w.balance(t, account))
		_, err = w.Open(t.Context(), Order{ID: tasks.NewID(), Account: account}, doors.Settings{Format: telephone})
		assert.Equal(t, doors.Unpaid, reason(t, err))
		w.Exact()
	})
}

// When the process of the models dies, the delivered sentences are charged and
// kept, and nothing else.
func TestProcessDies(t *testing.T) {
	for _, delivered := range []bool{true, false} {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			w := open(t, d)
			before := w.balance(t, w.Account)
			o := Order{ID: tasks.NewID(), Store: true}
			s := w.begin(t, o)
			next, ended := listen(s)
			require.NoError(t, speak(t, s, 50))
			if delivered {
				require.NoError(t, s.Commit(t.Context()))
				next()
			}
			require.NoError(t, speak(t, s, 100))
			w.kill()
			_, err := s.Close() // while the events are read
			assert.Equal(t, doors.Fault, reason(t, <-ended))
			assert.Equal(t, doors.Fault, reason(t, err))
			task := w.Row(o.ID)
			if !delivered {
				assert.Equal(t, tasks.StatusFailed, task.Status)
				assert.Equal(t, before, w.balance(t, w.Account))
			} else {
				result, bill := w.ReadResult(o.ID)
				assert.Equal(t, "word", result.Segments[0].Text)
				assert.Equal(t, int64(1), bill.BillableMinutes)
				assert.Equal(t, before-bill.Amount, w.balance(t, w.Account))
			}
			w.Exact()
		})
	}
}

// A session whose server died, or that an operator has canceled, costs nothing
// and is not tried again.
func TestLostSessions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := open(t, d)
		before := w.balance(t, w.Account)
		for _, end := range []func(id string) error{
			func(string) error {
				_, err := w.Reap(t.Context(), w.member, tasks.EndInterrupted, "gone")
				return err
			},
			func(id string) error {
				_, err := w.Cancel(t.Context(), id)
				return err
			},
		} {
			o := Order{ID: tasks.NewID(), Store: true}
			s := w.begin(t, o)
			_, ended := listen(s)
			require.NoError(t, speak(t, s, 10))
			require.NoError(t, end(o.ID))
			task := w.Row(o.ID)
			assert.Equal(t, tasks.StatusFailed, task.Status)
			assert.True(t, task.Final())
			assert.Equal(t, doors.Canceled, reason(t, speak(t, s, 60)))
			_, err := s.Close()
			require.Error(t, err)
			require.NoError(t, <-ended)
			assert.Equal(t, before, w.balance(t, w.Account))
			assert.Nil(t, w.Take())
			w.Exact()
		}
	})
}

// Sessions beyond the limits of the server and of the account are refused, and
// so are options that the models do not support; a refused session leaves no
// task.
func TestRefusedSessions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := open(t, d)
		one := 1
		account := w.NewAccount("small", billing.Unit)
		require.NoError(t, w.Accounts.SetLimits(t.Context(), account, accounts.Overrides{Concurrency: &one}))
		try := func(account string, set doors.Settings) error {
			set.Format = telephone
			_, err := w.Open(t.Context(), Order{ID: tasks.NewID(), Account: account}, set)
			return err
		}
		s := w.begin(t, Order{ID: tasks.NewID(), Account: account})
		w.moment = time.Millisecond
		assert.Equal(t, doors.Limited, reason(t, try(account, doors.Settings{})))
		assert.Equal(t, doors.Invalid, reason(t, try(w.Account, doors.Settings{Options: spec.Options{ASRBeamSize: new(99)}})))
		other := w.begin(t, Order{ID: tasks.NewID()})
		assert.Equal(t, doors.Full, reason(t, try(w.Account, doors.Settings{})))
		w.moment = time.Minute // for the next sessions, which wait for these ends
		for _, s := range []doors.Session{s, other} {
			_, ended := listen(s)
			go func() {
				_, err := s.Close()
				assert.NoError(t, errors.Join(err, <-ended))
			}()
		}
		set := doors.Settings{Format: telephone, Silence: 11}
		s, err := w.Open(t.Context(), Order{ID: tasks.NewID(), Account: account}, set)
		require.NoError(t, err)
		_, ended := listen(s)
		select {
		case err := <-ended:
			assert.Equal(t, doors.Invalid, reason(t, err))
		case <-time.After(time.Minute):
			t.Error("the models' refusal did not come")
		}
		_, err = s.Close()
		require.Error(t, err)
		w.Exact()
	})
}
