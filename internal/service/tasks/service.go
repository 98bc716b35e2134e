package tasks

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// Config holds a Service's dependencies and policy. DB (migrated) and Blobs are
// required; zero values of the other fields select the service's defaults.
type Config struct {
	DB     *db.DB
	Blobs  *blob.Store
	Logger *slog.Logger     // nil discards
	Clock  func() time.Time // nil is time.Now

	// Prober determines the length of an upload or download, for the size of
	// its hold; if nil, the price of UnknownLength is held.
	Prober  Prober
	TempDir string // for recordings that Prober needs as local files and that are not in a folder; "" is the system's

	UnknownLength  time.Duration   // length of the hold if a task's length is unknown at its creation; default 1 min
	KeepAudio      time.Duration   // how long audio is kept after the task is final; 0 deletes it at the end
	EraseAtOnce    int             // files erased concurrently; 0 means 8
	KeepTasks      time.Duration   // how long a task and its result are kept after its end; 0 means forever
	RetryDelays    []time.Duration // after the 1st, 2nd … failed attempt; default 10 s, 1 min, 5 min (4 attempts in all)
	CallbackDelays []time.Duration // after the 1st, 2nd … failed delivery; default 1, 5, 30 s (4 deliveries in all)
	CallbackTail   []time.Duration // after each further failed delivery
	BatchWait      time.Duration   // a batch task that has waited this long goes before the tasks lane; default 20 h
	Random         func() float64  // returns 0 ≤ x < 1 for the jitter of retries; nil means math/rand
	Ended          func(Ending)    // called for each claim that this process ends without a result; may be nil
}

// retryJitter is the share by which a delay grows or shrinks at most.
const retryJitter = 0.2

// MaxCrashes is the number of crashes of native code after which a task fails.
const MaxCrashes = 3

// maxInterruptions is the number of times a task is handed back uncounted after
// its worker was killed from outside or its machine was lost. Further
// interruptions count as failed attempts, so that no task is tried forever.
const maxInterruptions = 50

// idempotencyAge is the time for which an idempotency key is remembered.
const idempotencyAge = 24 * time.Hour

// Service stores tasks and enforces their rules, with one part for each kind of
// user. It is safe for concurrent use, also by processes on one database.
type Service struct {
	*core
	*Owners
	*Runs
	*Operators
}

// Owners serves the accounts that tasks belong to: it creates, shows, annotates,
// cancels and deletes an account's tasks.
type Owners struct{ *core }

// Runs serves the processes that do the work: it claims downloads and tasks for
// them, and records how these end.
type Runs struct{ *core }

// Operators serves the operators of the service. It checks no account.
type Operators struct{ *core }

// core holds the state that the parts of a Service share.
type core struct {
	Config  Config
	billing *billing.Store
	queue   *queue.Queue
	outbox  *webhook.Outbox
	watcher *watcher
	probing *fairuse.Gate // limits the recordings probed at the same time
}

// New returns a service on a migrated database and a file store.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.Blobs == nil {
		return nil, errors.New("tasks: Config needs DB and Blobs")
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.RetryDelays == nil {
		c.RetryDelays = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}
	}
	if c.CallbackDelays == nil {
		c.CallbackDelays = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
	}
	c.UnknownLength = cmp.Or(c.UnknownLength, time.Minute)
	c.BatchWait = cmp.Or(c.BatchWait, 20*time.Hour)
	c.EraseAtOnce = cmp.Or(c.EraseAtOnce, 8)
	if c.Ended == nil {
		c.Ended = func(Ending) {}
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	probes := max(2, runtime.GOMAXPROCS(0))
	shared := &core{
		Config: c, billing: billing.New(c.DB.Read(), c.DB, c.Clock), watcher: &watcher{tasks: map[string]*followed{}, added: make(chan struct{}, 1)}, probing: fairuse.NewGate(probes, probes-1, maxProbesWaiting), // one account leaves a slot to the others
		queue:  queue.New(queue.Config{DB: c.DB, Clock: c.Clock, Logger: c.Logger, BatchWait: c.BatchWait, Horizon: backoff.Horizon(c.RetryDelays...)}),
		outbox: webhook.New(webhook.Config{DB: c.DB, Clock: c.Clock, Logger: c.Logger, Delays: slices.Concat(c.CallbackDelays, c.CallbackTail)}),
	}
	return &Service{shared, &Owners{shared}, &Runs{shared}, &Operators{shared}}, nil
}

// Billing returns the billing store of the same database.
func (s *core) Billing() *billing.Store { return s.billing }

// Queue returns the queue of the tasks.
func (s *core) Queue() *queue.Queue { return s.queue }

// Outbox returns the queue of the callbacks.
func (s *core) Outbox() *webhook.Outbox { return s.outbox }

func (s *core) now() time.Time { return db.Time(db.Micros(s.Config.Clock())) }

func (s *core) wrap(what string, err error) error { return s.Config.DB.Wrap("tasks: "+what, err) }

// Outage reports whether an error is a temporary failure of the service: the
// database or the file store can't be reached or is full.
func Outage(err error) bool { return db.Outage(err) || blob.Outage(err) }

var validExtension = regexp.MustCompile(`^\.[a-z0-9]{1,8}$`)

// AudioKey returns a new key for audio, with the file name's extension.
func AudioKey(filename string) string {
	ext := strings.ToLower(path.Ext(filename))
	if !validExtension.MatchString(ext) {
		ext = ""
	}
	return "audio/" + uuid.NewString() + ext
}

// NewAudio begins a file for the audio of a new task. The caller commits it and
// passes its Info to Create, or aborts it.
func (s *Owners) NewAudio(ctx context.Context, filename string) (*blob.Writer, error) {
	return s.Config.Blobs.Create(ctx, AudioKey(filename))
}

// DropAudio deletes a file that no task uses. If a row refers to the file, it
// stays, because a commit may have succeeded without confirmation. Failures are
// logged; the clean-up deletes remaining files.
func (s *core) DropAudio(ctx context.Context, key string) {
	ctx = context.WithoutCancel(ctx)
	referenced, err := s.Referenced(ctx, []string{key})
	if err == nil && !referenced[key] {
		err = s.Config.Blobs.Delete(ctx, key)
	}
	if err != nil {
		s.Config.Logger.WarnContext(ctx, "file without a task stays until the clean-up", "key", key, "error", err)
	}
}

const checkpointFolder = "checkpoints/"

// CheckpointPrefix returns the prefix of the keys of a task's checkpoints.
func CheckpointPrefix(task string) string { return checkpointFolder + task + "/" }
