package worker

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// Config configures a Worker. Engine is required. Zero values of the other
// fields select the service's defaults.
type Config struct {
	Engine  Engine
	Prober  tasks.Prober // nil: the length is only known after decoding
	TempDir string       // for copies of audio from S3; "" is the system's
	Version string       // of the program, for the list of workers
	// Available describes the capabilities of the Engine's models, which
	// determine the price of holds. The zero value means unknown.
	Available spec.Available

	// Models checks that the models can still be read; nil means always.
	Models func(context.Context) error
	// Outage is called when a resource fails, with the time since which
	// nothing is claimed, and with the zero time when it works again.
	Outage func(part Part, since time.Time)

	ID string // "" takes the environment's OTOGRAPH_WORKER_ID, else a new one

	Poll      time.Duration // the longest time between checks of an empty queue; default 250 ms on SQLite, where other processes can't always wake this one, 5 s on PostgreSQL
	Heartbeat time.Duration // default 5 s
	Grace     time.Duration // time that a running task may take to finish at shutdown; default 25 s
	// Gone, if not nil, is done when the service that started this process is
	// gone; a running task is then handed back after goneGrace.
	Gone context.Context
	// StallTimeout is how long an engine may work without a sign of progress,
	// in addition to a tenth of the audio's length; default DefaultStall.
	StallTimeout time.Duration
	HangTimeout  time.Duration // how long an engine may take to return after its context is done; default 15 s
}

// goneGrace is the time that a running task may take to finish without the
// service that started this process.
const goneGrace = 2 * time.Second

// Worker runs tasks, one at a time.
type Worker struct {
	service *tasks.Runs
	config  Config
	breaker *breaker
	store   *accounts.Store // of known voices
	reports reports         // the engine's progress
}

// Environment variables by which a supervisor names a worker and itself.
const (
	envWorker     = "OTOGRAPH_WORKER_ID"
	envSupervisor = "OTOGRAPH_SUPERVISOR_ID"
)

// Self returns the names that a supervisor gave to this process and to itself.
// Without a supervisor they are a new name and "".
func Self() (id, supervisor string) {
	return cmp.Or(os.Getenv(envWorker), uuid.NewString()), os.Getenv(envSupervisor)
}

// New returns a worker for a service.
func New(s *tasks.Runs, c Config) (*Worker, error) {
	if c.Engine == nil {
		return nil, errors.New("worker: Config needs an Engine")
	}
	id, _ := Self()
	c.ID = cmp.Or(c.ID, id)
	c.Poll = cmp.Or(c.Poll, defaultPoll(s))
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.Grace = cmp.Or(c.Grace, 25*time.Second)
	c.StallTimeout = cmp.Or(c.StallTimeout, DefaultStall)
	c.HangTimeout = cmp.Or(c.HangTimeout, 15*time.Second)
	if c.Outage == nil {
		c.Outage = func(Part, time.Time) {}
	}
	return &Worker{
		service: s, config: c, reports: reports{begun: make(chan struct{}, 1)}, store: accounts.New(s.Config.DB, s.Config.Logger, s.Config.Clock),
		breaker: &breaker{service: s, id: c.ID, dir: c.TempDir, models: c.Models, report: c.Outage},
	}, nil
}

// ErrHung is returned if the engine did not return: the process must end,
// because the engine's threads still run.
var ErrHung = errors.New("engine does not return")

// taskTimeout is the wall-clock limit of one attempt.
const taskTimeout = 12 * time.Hour

// errTimeout is the cause that ends a run after taskTimeout.
var errTimeout = errors.New("exceeded the wall-clock limit")

// Run works until ctx is done; then the current task may end within Grace, or
// is handed back. An error that wraps ErrHung means that the engine did not
// return: the process must end, because its threads still run.
func (w *Worker) Run(ctx context.Context) error {
	s, c := w.service, w.config
	type running struct {
		held *queue.Claim
		end  context.CancelCauseFunc
	}
	var current atomic.Pointer[running]
	_, supervisor := Self()
	m := queue.Member{ID: c.ID, Kind: queue.Worker, Supervisor: supervisor, Version: c.Version, ModelSet: c.Engine.ModelSet(), Available: c.Available, Progress: w.reports.take, Written: w.reports.written}
	stop, joined := s.Queue().Join(ctx, m, c.Heartbeat, func(ctx context.Context) {
		if r := current.Load(); r != nil {
			if still, err := s.Queue().Current(ctx, r.held); err == nil && !still {
				r.end(queue.ErrSuperseded)
			}
		}
	})
	if !joined {
		return nil
	}
	defer stop()
	wake := s.Queue().Wakeups(ctx)
	unconfirmed := false // a claim may have been committed without confirmation
	for ctx.Err() == nil && w.breaker.wait(ctx) {
		task, err := w.breaker.claim(ctx, unconfirmed, nil, func() (*tasks.Claim, error) { return s.Next(ctx, c.ID, c.Engine.ModelSet()) })
		if unconfirmed = err != nil; task == nil {
			if err == nil {
				idle(ctx, s, c.Poll, wake, nil)
			}
			continue
		}
		run, end := context.WithCancelCause(context.WithoutCancel(ctx))
		current.Store(&running{task.Held, end})
		err = w.work(ctx, run, end, task)
		current.Store(nil)
		end(nil)
		if errors.Is(err, ErrHung) {
			return err
		}
	}
	return nil
}

// work runs one claim to its end. drain is done when the worker should stop;
// run is the context of the task's steps.
func (w *Worker) work(drain, run context.Context, cancel context.CancelCauseFunc, c *tasks.Claim) error {
	s, log := w.service, w.service.Config.Logger
	defer time.AfterFunc(taskTimeout, func() { cancel(errTimeout) }).Stop()
	defer context.AfterFunc(drain, func() {
		if backoff.Sleep(run, w.config.Grace) {
			cancel(queue.ErrDraining)
		}
	})()
	if gone := w.config.Gone; gone != nil {
		defer context.AfterFunc(gone, func() {
			if backoff.Sleep(run, goneGrace) {
				cancel(queue.ErrDraining)
			}
		})()
	}
	log.InfoContext(run, "task begins", "task", c.ID, "account", c.AccountID, "attempt", c.Held.Attempt, "worker", w.config.ID)
	err := w.attempt(run, c)
	if err == nil {
		return nil
	}
	cause := context.Cause(run)
	var hung error
	if errors.Is(err, ErrHung) {
		hung = ErrHung
	}
	if !public(err) {
		if named, ok := errors.AsType[renamedError](err); ok {
			err = named.error // with the path, because the customer's file name must not be logged
		}
		log.WarnContext(run, "attempt failed inside the service", "task", c.ID, "attempt", c.Held.Attempt, "error", err)
	}
	if errors.Is(err, queue.ErrSuperseded) || errors.Is(cause, queue.ErrSuperseded) {
		log.WarnContext(run, "claim superseded: the work is dropped", "task", c.ID, "attempt", c.Held.Attempt, "worker", w.config.ID)
		return hung
	}
	how, message := endOf(err, cause)
	if how == tasks.EndOutage {
		w.breaker.open(partOf(err, PartStore))
	}
	var patience time.Duration // forever while the worker keeps running
	if drain.Err() != nil {
		patience = lastWrite
	}
	if err := release(run, s, c, how, message, patience); err != nil {
		log.ErrorContext(run, "end of an attempt not written; the watch takes the task back", "task", c.ID, "error", err)
		hung = ErrHung // this worker's claims are only released when it dies
	}
	return hung
}

// Errors that end a task whose upload was deleted or damaged before it ran, for
// example by restoring a backup.
var (
	errAudioGone  = errors.New("audio gone: the service no longer has the recording, please submit it again; nothing is charged")
	errDamaged    = errors.New("audio damaged: the service no longer has the recording as it was submitted, please submit it again; nothing is charged")
	errVoicesGone = errors.New("voices gone: the recordings of the known speakers are gone, please submit the task again; nothing is charged")
)

type enginePanic struct{ value any }

func (p enginePanic) Error() string { return fmt.Sprintf("the engine panicked: %v", p.value) }

// attempt runs the steps of a claim.
func (w *Worker) attempt(ctx context.Context, c *tasks.Claim) error {
	s := w.service
	if len(c.Ignored) > 0 {
		s.Config.Logger.WarnContext(ctx, "options of a newer release are ignored: upgrade workers before servers", "task", c.ID, "options", c.Ignored)
	}
	path, release, err := w.audio(ctx, c)
	switch lost := errors.Is(err, blob.ErrNotFound) || errors.Is(err, errDamaged); {
	case lost && c.URL != "":
		return backoff.Retry(ctx, tasks.Outage, func(ctx context.Context) error { return s.Refetch(ctx, c) })
	case errors.Is(err, errDamaged):
		return spec.Permanent(err)
	case err != nil:
		return w.gone(ctx, fmt.Errorf("audio: %w", err), errAudioGone)
	}
	defer release()
	outcome, err := w.transcribe(ctx, c, path)
	if err != nil {
		return renamedError{err, path, c.AudioFilename}
	}
	// Neither the worker's end nor a time limit may discard the result.
	last, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	defer context.AfterFunc(ctx, func() {
		backoff.Sleep(last, w.config.HangTimeout)
		done()
	})()
	return backoff.Retry(last, tasks.Outage, func(ctx context.Context) error { return s.Complete(ctx, c, outcome) })
}

// renamedError names a local file as the customer does.
type renamedError struct {
	error
	path, name string
}

func (e renamedError) Error() string { return strings.ReplaceAll(e.error.Error(), e.path, e.name) }
func (e renamedError) Unwrap() error { return e.error }

// transcribe runs the engine on a claim's audio at path, after the price of its
// length is held, and checks the outcome.
func (w *Worker) transcribe(ctx context.Context, c *tasks.Claim, path string) (outcome tasks.Outcome, err error) {
	voices, forget, err := w.voices(ctx, c)
	defer forget()
	if err != nil {
		return outcome, err
	}
	register, forgetRegister := w.register(c)
	defer forgetRegister()
	seconds := c.Seconds
	if w.config.Prober != nil && (seconds == 0 || seconds >= spec.MaxAudioSeconds) { // more seconds are not stored
		if seconds, err = w.config.Prober.Probe(ctx, path, c.AudioFilename); err != nil {
			return outcome, err
		}
	}
	affordable, err := w.pay(ctx, c, seconds)
	if err != nil {
		return outcome, err
	}
	stages, err := newCheckpoints(w.service.Config.Blobs, c, w.config.Engine.ModelSet())
	if err != nil {
		return outcome, err
	}
	var unpaid error
	progress, reported := w.reporter(ctx, c)
	outcome, err = w.runEngine(ctx, seconds, Job{
		TaskID: c.ID, Path: path, Filename: c.AudioFilename, Options: c.Options, Extras: c.Extras, Voices: voices, Register: register,
		Checkpoints: stages, Progress: progress, Segments: w.reports.addSegments,
		MaxSeconds: min(affordable.Most, spec.MaxAudioSeconds),
		Decoded: func(seconds float64) error {
			if seconds <= affordable.Held {
				return nil
			}
			_, unpaid = w.pay(ctx, c, seconds)
			return unpaid
		},
	})
	reported()
	switch {
	case unpaid != nil:
		return outcome, unpaid
	case errors.Is(err, ErrUnpaid) && affordable.Most < spec.MaxAudioSeconds:
		return outcome, spec.Permanent(fmt.Errorf("insufficient_balance: the audio lasts longer than the %.0f min that the available balance pays for; nothing is charged", affordable.Most/60))
	case err != nil:
		if w.config.Models != nil && ctx.Err() == nil && !spec.IsPermanent(err) { // unreadable models are the service's fault
			if broken := w.config.Models(ctx); broken != nil {
				err = modelsError{errors.Join(err, broken)}
			}
		}
		return outcome, err
	}
	if outcome.Tier != "" && outcome.Tier != spec.TierStandard && outcome.Tier != spec.TierOptimized {
		return outcome, fmt.Errorf("the engine reports the unknown tier %.40q", outcome.Tier)
	}
	return outcome, w.checkLength(outcome.Seconds)
}

// audio returns the path of a task's recording on this machine, copying it if
// necessary. A recording that was truncated or replaced in the store must not
// be transcribed: then the error is errDamaged.
func (w *Worker) audio(ctx context.Context, c *tasks.Claim) (path string, release func(), err error) {
	release = func() {}
	if c.Blob == "" {
		return "", release, blob.ErrNotFound
	}
	path, release, err = w.service.Config.Blobs.Local(ctx, c.Blob, w.config.TempDir)
	if err != nil || c.AudioMD5 == nil {
		return path, release, err
	}
	sum, err := fileMD5(path)
	if err == nil && sum != *c.AudioMD5 {
		w.service.Config.Logger.ErrorContext(ctx, "the stored recording is damaged", "task", c.ID, "key", c.Blob, "md5", sum, "submitted", *c.AudioMD5)
		err = errDamaged
	}
	if err != nil {
		release()
		return "", func() {}, err
	}
	return path, release, nil
}

func fileMD5(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := md5.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// gone returns the cause of an error of reading a task's file: permanent if the
// file no longer exists, so that no retry can succeed. A store that is not
// mounted or was emptied has also lost its identity; only a store that has its
// identity proves that the file is gone.
func (w *Worker) gone(ctx context.Context, err, permanent error) error {
	if !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	if _, lost := w.service.Config.Blobs.Identity(ctx); lost != nil {
		return err
	}
	return spec.Permanent(permanent)
}

// voices copies the recordings of a task's known voices to this machine; forget
// removes them.
func (w *Worker) voices(ctx context.Context, c *tasks.Claim) (paths []string, forget func(), err error) {
	var releases []func()
	forget = func() {
		for _, release := range releases {
			release()
		}
	}
	for i := range c.Extras.Voices {
		path, release, err := w.service.Config.Blobs.Local(ctx, tasks.ReferenceKey(c.ID, i), w.config.TempDir)
		if err != nil {
			return nil, forget, w.gone(ctx, fmt.Errorf("known voice: %w", err), errVoicesGone)
		}
		paths, releases = append(paths, path), append(releases, release)
	}
	return paths, forget, nil
}

// register returns a function that reads the known voices of a task's account,
// nil if it requests none; forget overwrites the vectors. They are read no
// earlier than needed: a voice deleted before then names no speaker.
func (w *Worker) register(c *tasks.Claim) (read func(context.Context) (*voices.Register, error), forget func()) {
	if c.Options.Voices == nil || !*c.Options.Voices {
		return nil, func() {}
	}
	var registers []*voices.Register
	read = func(ctx context.Context) (register *voices.Register, err error) {
		err = backoff.Retry(ctx, tasks.Outage, func(ctx context.Context) (err error) {
			register, err = w.store.Register(ctx, c.AccountID)
			return err
		})
		registers = append(registers, register)
		return register, err
	}
	return read, func() {
		for _, r := range registers {
			r.Clear()
		}
	}
}

// pay holds the price of the audio's length, if it is known.
func (w *Worker) pay(ctx context.Context, c *tasks.Claim, seconds float64) (affordable tasks.Affordable, err error) {
	if err := w.checkLength(seconds); err != nil {
		return affordable, err
	}
	err = backoff.Retry(ctx, tasks.Outage, func(ctx context.Context) (err error) {
		affordable, err = w.service.Probed(ctx, c, seconds)
		return err
	})
	return affordable, err
}

// checkLength refuses audio that is too long. An impossible length is a failure
// of the engine, not of the input.
func (w *Worker) checkLength(seconds float64) error {
	if math.IsNaN(seconds) || seconds < 0 {
		return fmt.Errorf("the reported duration of the audio is %v s", seconds)
	}
	if seconds > spec.MaxAudioSeconds {
		return spec.Permanent(fmt.Errorf("the audio lasts %.2f s; at most %.0f s are allowed", seconds, spec.MaxAudioSeconds))
	}
	return nil
}

// runEngine calls the engine for audio of the given length, 0 if unknown. It
// ends a call without progress, and abandons a call that then does not return.
func (w *Worker) runEngine(ctx context.Context, seconds float64, job Job) (tasks.Outcome, error) {
	ctx, job, done := watchStall(ctx, w.config.StallTimeout, seconds, job)
	defer done()
	type answer struct {
		outcome tasks.Outcome
		err     error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if value := recover(); value != nil {
				a.err = enginePanic{value}
				w.service.Config.Logger.Error("the engine panicked", "task", job.TaskID, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
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
	select {
	case <-answers: // too late to be recorded under this claim
		return tasks.Outcome{}, context.Cause(ctx)
	case <-time.After(w.config.HangTimeout):
		return tasks.Outcome{}, fmt.Errorf("%w %s after its context ended: %w", ErrHung, w.config.HangTimeout, context.Cause(ctx))
	}
}
