// Package sessions runs live sessions of the service: each is a task with a
// hold that grows by the minute. The models run in a separate process, which
// all sessions share.
package sessions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/spec"
)

// Config configures Sessions. Tasks, Socket, Process, Permit, Feed are
// required.
type Config struct {
	Tasks   *tasks.Service
	Socket  string                                               // of Host
	Process func(context.Context) error                          // keeps the process of Host running, from the first session on
	Permit  func(ctx context.Context, account, key string) error // as accounts.Store.Permit
	Feed    func(doors.Format) (Feed, error)                     // decodes the sound to be stored
	Most    int                                                  // sessions at the same time
	Grace   time.Duration
	Logger  *slog.Logger
	Version string
	Counts  *metrics.Live
}

// Sessions runs the live sessions of a server. It is safe for concurrent use.
type Sessions struct {
	config Config
	member string        // id
	open   atomic.Int64  // sessions with sound
	inside atomic.Int64  // connections, and sessions that are not settled
	first  chan struct{} // closed at the first session
	begin  sync.Once
	life   context.Context
	die    func()

	permitEvery time.Duration // between checks of a connection's rights
	patience    time.Duration // how long the end of a session waits for its settlement
	moment      time.Duration // how long a session waits for a place
}

// New returns Sessions.
func New(c Config) *Sessions {
	s := &Sessions{config: c, member: uuid.NewString(), first: make(chan struct{}), permitEvery: 2 * time.Second, patience: longestClose, moment: 5 * time.Second}
	s.life, s.die = context.WithCancel(context.Background())
	return s
}

// Run keeps the server's heartbeat for its sessions, and their process from the
// first session on, until ctx is done and the sessions have ended, at most for
// Grace.
func (s *Sessions) Run(ctx context.Context) error {
	stop, joined := s.config.Tasks.Queue().Join(ctx, queue.Member{ID: s.member, Kind: queue.Live, Version: s.config.Version}, 5*time.Second, nil)
	if !joined {
		return nil
	}
	defer stop()
	select {
	case <-s.first:
	case <-ctx.Done():
		return nil
	}
	defer s.die()
	defer context.AfterFunc(ctx, func() {
		for begun := time.Now(); s.inside.Load() > 0 && time.Since(begun) < s.config.Grace; {
			time.Sleep(20 * time.Millisecond)
		}
		s.die()
	})()
	return s.config.Process(s.life)
}

// Enter counts a connection until leave is called: Run waits for it. The context
// ends with the reason Canceled soon after its account is suspended, or its key,
// "" for none, is revoked.
func (s *Sessions) Enter(ctx context.Context, account, key string) (_ context.Context, leave func()) {
	s.inside.Add(1)
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		_ = backoff.Every(ctx, s.permitEvery, func() error {
			if err := refusal(s.config.Permit(ctx, account, key)); errors.As(err, new(*doors.EndError)) {
				end(err)
			}
			return nil
		})
	}()
	return ctx, func() {
		end(nil)
		s.inside.Add(-1)
	}
}

// Order holds the client's part of a session's task.
type Order struct {
	ID                          string // of the task
	Account                     string
	Key                         string // id of the API key, or ""
	Store                       bool   // keeps the task with its result, and the sound for as long as a recording
	CallbackURL, CallbackSecret string
}

// Open opens a session, with the hold of its first minute. It waits a moment for
// a place: clients end a session and begin the next one while its text is made.
func (s *Sessions) Open(ctx context.Context, o Order, set doors.Settings) (opened doors.Session, err error) {
	limit, cancel := context.WithTimeout(ctx, s.moment)
	defer cancel()
	crowded := func(err error) bool {
		e, ok := errors.AsType[*doors.EndError](err)
		return ok && (e.Reason == doors.Full || e.Reason == doors.Limited)
	}
	err = backoff.Retry(limit, crowded, func(context.Context) error {
		opened, err = s.place(ctx, o, set)
		return err
	})
	return opened, err
}

func (s *Sessions) place(ctx context.Context, o Order, set doors.Settings) (_ doors.Session, err error) {
	defer func() {
		if err != nil {
			s.open.Add(-1)
		}
	}()
	if s.open.Add(1) > int64(s.config.Most) {
		return nil, &doors.EndError{Reason: doors.Full, Text: "the service has no room for another session; try again later"}
	}
	s.begin.Do(func() { close(s.first) })
	// Refused before the wait for the models; OpenLive asks again as it creates the task.
	if err := refusal(s.config.Permit(ctx, o.Account, o.Key)); err != nil {
		return nil, err
	}
	options, err := set.Options.Effective()
	if err != nil {
		return nil, &doors.EndError{Reason: doors.Invalid, Text: err.Error()}
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, &doors.EndError{Reason: doors.Full, Text: "the process that transcribes does not run yet; try again"}
	}
	kept, err := s.record(o, set.Format)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	claim, err := s.config.Tasks.OpenLive(ctx, tasks.Request{
		ID: o.ID, Account: o.Account, Key: o.Key, Seconds: minute, Filename: recordingName, Options: options, Extras: tasks.Extras{Extras: set.Extras},
		CallbackURL: o.CallbackURL, CallbackSecret: o.CallbackSecret,
	}, s.member)
	if err != nil {
		_ = conn.Close()
		kept.drop()
		return nil, refusal(err)
	}
	r := &remote{conn: conn, counts: s.config.Counts, out: make(chan message, 8), events: make(chan spec.LiveEvent, 64), done: make(chan struct{})}
	r.out <- message{Settings: &set}
	go r.write()
	go r.read()
	return &session{
		remote: r, sessions: s, claim: claim, order: o, format: set.Format, recording: kept, ended: s.config.Counts.Begins(),
	}, nil
}

// startTime is how long a session waits for the process of the models.
const startTime = 20 * time.Second

// connect connects to the process, which may be starting.
func (s *Sessions) connect(ctx context.Context) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err = backoff.Retry(ctx, func(error) bool { return true }, func(ctx context.Context) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", s.config.Socket)
		return err
	})
	return conn, err
}

// refusal returns the end of a session whose task was not created, or whose
// account or key has lost the right to it.
func refusal(err error) error {
	switch {
	case errors.Is(err, accounts.ErrUnauthorized), errors.Is(err, accounts.ErrSuspended):
		return &doors.EndError{Reason: doors.Canceled, Text: "the account is suspended, or the API key was revoked or has expired"}
	case errors.Is(err, billing.ErrInsufficientBalance):
		return &doors.EndError{Reason: doors.Unpaid, Text: unpaid}
	case errors.Is(err, billing.ErrConcurrencyLimit):
		return &doors.EndError{Reason: doors.Limited, Text: "too many concurrent tasks: see concurrency_limit in GET /account"}
	case errors.Is(err, tasks.ErrTranslation), errors.Is(err, tasks.ErrModel):
		return &doors.EndError{Reason: doors.Invalid, Text: "the model is not installed, or cannot do this"}
	}
	if e, ok := errors.AsType[*tasks.LanguageError](err); ok {
		return &doors.EndError{Reason: doors.Invalid, Text: e.Error()}
	}
	return err
}

const unpaid = "the balance is used up; what was transcribed is charged"

const minute = 60

// session is a session that is a task.
type session struct {
	*remote
	sessions  *Sessions
	claim     *tasks.Claim
	order     Order
	ended     func(reason string)
	recording *recording

	mu      sync.Mutex
	format  doors.Format
	seconds float64 // received
	held    float64 // seconds that the hold pays for
}

// Write implements doors.Session. It refuses sound that no hold covers.
func (s *session) Write(ctx context.Context, data []byte) error {
	s.mu.Lock()
	f, seconds := s.format, s.seconds
	s.mu.Unlock()
	for len(data) > 0 {
		if s.held-seconds < f.Seconds(int64(f.Frame())) {
			if err := s.hold(ctx, s.held+minute); err != nil {
				return err
			}
		}
		piece := data[:min(len(data), f.Bytes(s.held-seconds))]
		data = data[len(piece):]
		if err := s.remote.Write(ctx, piece); err != nil {
			return err
		}
		s.recording.write(piece, f)
		seconds += f.Seconds(int64(len(piece)))
		s.mu.Lock()
		s.seconds = seconds
		s.mu.Unlock()
	}
	return nil
}

// hold raises the task's hold for more seconds.
func (s *session) hold(ctx context.Context, seconds float64) error {
	limit, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var a tasks.Affordable
	err := backoff.Retry(limit, tasks.Outage, func(ctx context.Context) (err error) {
		a, err = s.sessions.config.Tasks.Probed(ctx, s.claim, seconds)
		return err
	})
	switch {
	case errors.Is(err, billing.ErrInsufficientBalance):
		return &doors.EndError{Reason: doors.Unpaid, Text: unpaid}
	case errors.Is(err, queue.ErrSuperseded):
		return &doors.EndError{Reason: doors.Canceled, Text: "the operator of the service has canceled the session"}
	case err != nil:
		return err
	case a.Held < seconds:
		return &doors.EndError{Reason: doors.Expired, Text: "a session takes at most 24 hours of sound; connect again"}
	}
	s.held = seconds // not longer, so that the session learns of a cancellation at the next minute
	return nil
}

// Configure implements doors.Session.
func (s *session) Configure(ctx context.Context, set doors.Settings) error {
	s.mu.Lock()
	s.format = set.Format
	s.mu.Unlock()
	return s.remote.Configure(ctx, set)
}

// Close implements doors.Session: it ends the task. If the process has died, the
// sentences that were delivered are the result. If the database or the file
// store fails for long, the task is settled when they work again.
func (s *session) Close() (*spec.Result, error) {
	res, failed := s.remote.Close()
	limit, cancel := context.WithTimeout(context.Background(), s.sessions.patience)
	defer cancel()
	settle := func(ctx context.Context) error { return s.settle(ctx, res) }
	err := backoff.Retry(limit, tasks.Outage, settle)
	if !tasks.Outage(err) {
		return res, s.ends(res, failed, err)
	}
	s.sessions.config.Logger.Warn("live session not settled yet", "task", s.claim.ID, "error", err)
	s.sessions.inside.Add(1)
	go func() {
		defer s.sessions.inside.Add(-1)
		_ = s.ends(res, failed, backoff.Retry(s.sessions.life, tasks.Outage, settle))
	}()
	return res, err
}

// ends cleans up after a session. failed is the error of the session, err the
// error of ending its task. It returns err if the task did not end, else
// failed.
func (s *session) ends(res *spec.Result, failed, err error) error {
	defer s.sessions.open.Add(-1)
	defer s.recording.drop()
	ctx, log := context.Background(), s.sessions.config.Logger.With("task", s.claim.ID)
	reason := "done"
	switch {
	case errors.Is(err, queue.ErrSuperseded):
		reason, failed = "canceled", cmp.Or(failed, err)
	case err != nil:
		log.Error("live session not settled", "error", err)
		reason, failed = "failed", err
	case failed != nil:
		reason = "failed"
	}
	s.ended(reason)
	done := res != nil || len(s.finals) > 0
	if err == nil && done && !s.order.Store && s.order.CallbackURL == "" {
		if err := s.sessions.config.Tasks.Delete(ctx, s.order.Account, s.claim.ID); err != nil {
			log.Warn("live session not deleted", "error", err)
		}
	}
	return failed
}

func (s *session) settle(ctx context.Context, res *spec.Result) error {
	t := s.sessions.config.Tasks
	s.mu.Lock()
	seconds := s.seconds
	s.mu.Unlock()
	var o tasks.Outcome
	switch {
	case res != nil:
		o = tasks.Outcome{Result: *res, Tier: res.Tier, Seconds: seconds}
	case len(s.finals) == 0:
		return t.Release(ctx, s.claim, tasks.EndPermanent, "the live session failed; nothing is charged")
	default:
		var err error
		if o, err = t.Delivered(ctx, s.claim, s.finals); err != nil {
			return err
		}
	}
	s.recording.finish(&o)
	return t.Complete(ctx, s.claim, o)
}
