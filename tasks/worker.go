package tasks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
)

// WorkerConfig is what a Worker works with. Engine is required; HTTP is needed for URL tasks. Zero values of the rest are
// the service's rules.
type WorkerConfig struct {
	Engine  Engine
	Prober  Prober   // nil: the length is known only after the run
	HTTP    HTTPDoer // for audio
	TempDir string   // for copies of audio from S3; "" is the system's
	Version string   // of the program, for the list of workers

	ID         string // "" takes the environment's OTOGRAPH_WORKER_ID, else a new one
	Supervisor string // "" takes the environment's OTOGRAPH_SUPERVISOR_ID

	MinBytes, MaxBytes int64         // of fetched audio; default 1 KB, 2 GB
	MaxSeconds         float64       // of audio; default 5 hours
	Poll               time.Duration // between looks at an empty queue; default 250 ms
	Heartbeat          time.Duration // default 5 s
	Grace              time.Duration // how long a running task may go on when the worker is asked to end; default 25 s
	TaskTimeout        time.Duration // wall-clock limit of one attempt; default 12 hours
	HangTimeout        time.Duration // how long an engine may take to come back when it is told to; default 15 s
	FetchPause         time.Duration // before a dropped download is taken up again; default 1 s
}

// Worker runs tasks, one at a time.
type Worker struct {
	service *Service
	config  WorkerConfig
}

// Names of the environment by which a supervisor tells a worker who it is.
const (
	envWorker     = "OTOGRAPH_WORKER_ID"
	envSupervisor = "OTOGRAPH_SUPERVISOR_ID"
)

// NewWorker returns a worker over a service.
func NewWorker(s *Service, c WorkerConfig) (*Worker, error) {
	if c.Engine == nil {
		return nil, errors.New("tasks: WorkerConfig needs an Engine")
	}
	if c.ID == "" {
		c.ID = os.Getenv(envWorker)
	}
	if c.ID == "" {
		c.ID = uuid.NewString()
	}
	if c.Supervisor == "" {
		c.Supervisor = os.Getenv(envSupervisor)
	}
	setDefault(&c.MinBytes, 1<<10)
	setDefault(&c.MaxBytes, 2<<30)
	setDefault(&c.MaxSeconds, 5*3600)
	setDefault(&c.Poll, 250*time.Millisecond)
	setDefault(&c.Heartbeat, 5*time.Second)
	setDefault(&c.Grace, 25*time.Second)
	setDefault(&c.TaskTimeout, 12*time.Hour)
	setDefault(&c.HangTimeout, 15*time.Second)
	setDefault(&c.FetchPause, time.Second)
	return &Worker{service: s, config: c}, nil
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Causes for which a run is cut short.
var (
	errDraining = errors.New("the worker ends")
	errTimeout  = errors.New("exceeded the wall-clock limit")
)

// Run works until ctx is done; then the task at hand may end within Grace, else it is handed back. An error that wraps
// ErrHung means that the engine did not come back: the process must end, for the engine's threads still run.
func (w *Worker) Run(ctx context.Context) error {
	s, c := w.service, w.config
	var mu sync.Mutex
	var current *claim
	var cancel context.CancelCauseFunc
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		stop, err := s.keepBeating(ctx, newMember(c.ID, kindWorker, c.Supervisor, c.Version, c.Engine.ModelSet()), c.Heartbeat, func(ctx context.Context) {
			mu.Lock()
			held, end := current, cancel
			mu.Unlock()
			if held == nil {
				return
			}
			if still, err := s.held(ctx, held); err == nil && !still {
				end(ErrSuperseded)
			}
		})
		if err == nil {
			defer stop()
			break
		}
		s.log.WarnContext(ctx, "worker waits for the database", "worker", c.ID, "error", err)
		if !sleep(ctx, pause) {
			return nil
		}
	}
	for ctx.Err() == nil {
		task, err := s.next(ctx, c.ID, c.Engine.ModelSet())
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "no task claimed", "worker", c.ID, "error", err)
		}
		if err != nil && task == nil {
			sleep(ctx, max(c.Poll, time.Second))
			continue
		}
		if task == nil {
			sleep(ctx, c.Poll)
			continue
		}
		run, end := context.WithCancelCause(context.WithoutCancel(ctx))
		mu.Lock()
		current, cancel = task, end
		mu.Unlock()
		err = w.work(ctx, run, end, task)
		mu.Lock()
		current = nil
		mu.Unlock()
		end(nil)
		if errors.Is(err, ErrHung) {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// work runs one claim to its end. drain is done when the worker shall end; run is what the task's steps obey.
func (w *Worker) work(drain, run context.Context, cancel context.CancelCauseFunc, c *claim) error {
	s := w.service
	limit := time.AfterFunc(w.config.TaskTimeout, func() { cancel(errTimeout) })
	defer limit.Stop()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-finished:
			return
		case <-drain.Done():
		}
		grace := time.NewTimer(w.config.Grace)
		defer grace.Stop()
		select {
		case <-finished:
		case <-grace.C:
			cancel(errDraining)
		}
	}()
	s.log.InfoContext(run, "task begins", "task", c.ID, "account", c.AccountID, "attempt", c.attempt, "worker", w.config.ID)
	err := w.attempt(run, c)
	if err == nil {
		return nil
	}
	cause := context.Cause(run)
	hung := errors.Is(err, ErrHung)
	// What follows must be written even though run is over, but not wait for ever when the worker ends.
	last, done := context.WithTimeout(context.WithoutCancel(run), 20*time.Second)
	if drain.Err() == nil {
		done()
		last, done = context.WithCancel(context.WithoutCancel(run))
	}
	defer done()
	var how ending
	message := err.Error()
	if c.path != "" {
		message = strings.ReplaceAll(message, c.path, c.AudioFilename) // customers know no paths of ours
	}
	if !errors.As(err, new(shown)) {
		message = "internal error"
		if transient(err) {
			message = "the service's storage was not available"
		}
		s.log.WarnContext(run, "attempt failed inside the service", "task", c.ID, "attempt", c.attempt, "error", err)
	}
	switch {
	case errors.Is(err, ErrSuperseded) || errors.Is(cause, ErrSuperseded):
		s.log.WarnContext(run, "claim superseded: the work is dropped", "task", c.ID, "attempt", c.attempt, "worker", w.config.ID)
		return hungOr(hung)
	case errors.Is(cause, errDraining):
		how, message = endHandedBack, errDraining.Error()
	case errors.Is(cause, errTimeout):
		how, message = endRecoverable, fmt.Sprintf("the attempt %v of %s", errTimeout, w.config.TaskTimeout)
	case IsPermanent(err):
		how = endPermanent
	case errors.As(err, new(enginePanic)):
		how = endCrash
	default:
		how = endRecoverable
	}
	err = persist(last, func(ctx context.Context) error { return s.release(ctx, c, how, message) })
	if err != nil && !errors.Is(err, ErrSuperseded) {
		s.log.ErrorContext(run, "end of an attempt not written; the watch takes the task back", "task", c.ID, "error", err)
		hung = true // what this worker holds is only taken back when it dies
	}
	return hungOr(hung)
}

func hungOr(hung bool) error {
	if hung {
		return ErrHung
	}
	return nil
}

// persist runs a write until the store takes it or ctx is done: an outage of the database costs no finished work.
func persist(ctx context.Context, write func(ctx context.Context) error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := write(ctx)
		if err == nil || !transient(err) || !sleep(ctx, pause) {
			return err
		}
	}
}

func transient(err error) bool {
	for _, known := range []error{db.ErrUnavailable, db.ErrFull, blob.ErrUnavailable, blob.ErrFull} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// shown is an error whose text is for the customer: it speaks of the audio, not of the service.
type shown struct{ error }

func (e shown) Unwrap() error { return e.error }

// enginePanic is a panic in the engine's Go code.
type enginePanic struct{ value any }

func (p enginePanic) Error() string { return fmt.Sprintf("the engine panicked: %v", p.value) }

// attempt takes the claim through its steps.
func (w *Worker) attempt(ctx context.Context, c *claim) error {
	s := w.service
	md5 := ""
	if c.AudioMD5 != nil {
		md5 = *c.AudioMD5
	}
	path, release, err := "", func() {}, blob.ErrNotFound
	if c.blob != "" {
		path, release, err = s.blobs.Local(ctx, c.blob, w.config.TempDir)
	}
	if errors.Is(err, blob.ErrNotFound) && c.url != "" {
		if md5, err = w.fetch(ctx, c); err != nil {
			return err
		}
		path, release, err = s.blobs.Local(ctx, c.blob, w.config.TempDir)
	}
	if err != nil {
		return fmt.Errorf("audio: %w", err)
	}
	defer release()
	c.path = path
	if w.config.Prober != nil {
		seconds, err := w.config.Prober.Probe(ctx, path, c.AudioFilename)
		if err != nil {
			return shown{err}
		}
		if err := w.checkLength(seconds); err != nil {
			return err
		}
		if err := persist(ctx, func(ctx context.Context) error { return s.probed(ctx, c, seconds) }); err != nil {
			return err
		}
	}
	outcome, err := w.runEngine(ctx, Job{
		TaskID: c.ID, Path: path, Filename: c.AudioFilename, Options: c.Options,
		Checkpoints: s.checkpoints(c, w.config.Engine.ModelSet(), md5), Progress: func(string, float64) {},
	})
	if err != nil {
		return shown{err}
	}
	if err := w.checkLength(outcome.Seconds); err != nil {
		return err
	}
	if outcome.Tier != "" && outcome.Tier != string(billing.ModeStandard) && outcome.Tier != string(billing.ModeLite) {
		return fmt.Errorf("the engine reports the unknown tier %.40q", outcome.Tier)
	}
	// The work is done: neither the worker's end nor the wall clock may waste it now, within reason.
	last, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	defer context.AfterFunc(ctx, func() {
		sleep(last, w.config.HangTimeout)
		done()
	})()
	return persist(last, func(ctx context.Context) error { return s.complete(ctx, c, outcome) })
}

// fetch brings in the audio of a URL task and returns its MD5.
func (w *Worker) fetch(ctx context.Context, c *claim) (md5 string, err error) {
	s := w.service
	if w.config.HTTP == nil {
		return "", errors.New("this worker can't fetch URLs")
	}
	key, err := audioKey(c.AudioFilename)
	if err != nil {
		return "", err
	}
	info, err := fetchAudio(ctx, w.config.HTTP, s.blobs, c.url, key, fetchLimits{min: w.config.MinBytes, max: w.config.MaxBytes, resumes: 5, pause: w.config.FetchPause, stall: time.Minute})
	if err != nil {
		if transient(err) {
			return "", err
		}
		return "", shown{err}
	}
	if err := persist(ctx, func(ctx context.Context) error { return s.fetched(ctx, c, info.Key, info.Size, info.MD5) }); err != nil {
		if errors.Is(err, ErrSuperseded) {
			s.DropAudio(ctx, info.Key)
		}
		return "", err
	}
	c.blob = info.Key
	return info.MD5, nil
}

// checkLength refuses audio that is too long. Lengths that no file has are the engine's trouble, not the input's.
func (w *Worker) checkLength(seconds float64) error {
	if math.IsNaN(seconds) || seconds < 0 {
		return shown{fmt.Errorf("the audio is reported to last %v s", seconds)}
	}
	if seconds > w.config.MaxSeconds {
		return shown{Permanent(fmt.Errorf("the audio lasts %.2f s; at most %.0f s are taken", seconds, w.config.MaxSeconds))}
	}
	return nil
}

// runEngine calls the engine and gives up on one that does not come back after ctx is done.
func (w *Worker) runEngine(ctx context.Context, job Job) (Outcome, error) {
	type answer struct {
		outcome Outcome
		err     error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if value := recover(); value != nil {
				a.err = enginePanic{value}
				w.service.log.Error("the engine panicked", "task", job.TaskID, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
			}
			answers <- a
		}()
		a.outcome, a.err = w.config.Engine.Run(ctx, job)
	}()
	select {
	case a := <-answers:
		return a.outcome, a.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(w.config.HangTimeout)
	defer patience.Stop()
	select {
	case a := <-answers:
		if a.err == nil {
			a.err = context.Cause(ctx) // too late to be written under this claim's rules
		}
		return Outcome{}, a.err
	case <-patience.C:
		return Outcome{}, fmt.Errorf("%w %s after it was told to: %w", ErrHung, w.config.HangTimeout, context.Cause(ctx))
	}
}
