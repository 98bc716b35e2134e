package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/spec"
)

// Types that engines use.
type (
	// Engine turns a local audio file into a result; package service/engine
	// provides an engine that runs a pipeline. Its methods are
	//
	//	Run(ctx context.Context, job Job) (Outcome, error)
	//	ModelSet() string // models and version, for Checkpoints
	//
	// Errors caused by the input are marked with spec.Permanent; all others are
	// retried. If an Engine also has
	//
	//	Available() spec.Available
	//	CheckModels(context.Context) error
	//
	// Available prices holds; no task is claimed while CheckModels fails.
	Engine = worker.Engine
	// Job is the input of an Engine's run. Its fields are
	//
	//	TaskID     string
	//	Path       string                // of the audio, for this process to read
	//	Filename   string                // the customer's name of the file
	//	Options    spec.EffectiveOptions
	//	Extras     Extras
	//	Voices     []string              // paths of the recordings of Extras.Voices
	//	MaxSeconds float64               // the longest audio that is accepted: ErrUnpaid
	//	Checkpoints Checkpoints
	//	Register   func(context.Context) (*voices.Register, error) // known voices; nil if not requested
	//	Decoded    func(seconds float64) error                     // call it once, before costly work
	//	Progress   func(stage string, done float64)                // done is 0 to 1
	//	Working    func()                                          // signs of life between
	//	Segments   func([]spec.Segment)                            // takes new sentences
	//
	// The functions other than Register are never nil.
	Job = worker.Job
	// Extras are the options of a Job that are not in the specification:
	// spec.Extras and the names of known speakers, Voices.
	Extras = tasks.Extras
	// Checkpoints keep finished stages of a Job across attempts:
	//
	//	Load(ctx context.Context, stage string) ([]byte, error) // nil without a checkpoint
	//	Save(ctx context.Context, stage string, data []byte) error
	Checkpoints = worker.Checkpoints
	// Outcome is the result of a Job. Its fields are
	//
	//	Result     spec.Result // without the audio's MD5
	//	Tier       spec.Tier   // that ran, and is charged; "" for no transcription
	//	Seconds    float64     // decoded, and charged
	//	Waveform   []byte      // as audio.PCM.Peaks returns it; optional
	//	VoiceModel string      // SHA-256 of the speaker model; "" without voices
	//	Audio      …           // set by the service for a live session
	//	Recognized *…          // set by package service/engine for known voices
	Outcome = tasks.Outcome
	// Prober determines the length of recordings without an engine:
	//
	//	Probe(ctx context.Context, path, filename string) (seconds float64, err error)
	//
	// If it also has
	//
	//	CheckHead(filename string, head []byte) error
	//
	// the download of a file that begins with head ends early with a permanent
	// error.
	Prober = tasks.Prober
)

// Errors of engines and workers.
var (
	// ErrUnpaid is returned by an Engine for audio beyond Job.MaxSeconds.
	ErrUnpaid = worker.ErrUnpaid
	// ErrHung is returned by Run and Work if the engine does not return from a
	// call: the process must end, because the engine's threads still run.
	ErrHung = worker.ErrHung
)

// Config configures a Service and names its state by address: a Service opens
// SQLite once for reading and once for writing, and on PostgreSQL keeps a
// connection that listens, which a *sql.DB of the caller could not provide.
// Folder is required unless Database and Files are given; zero values of the
// other fields are the defaults of `otograph serve`.
type Config struct {
	// Folder holds the SQLite database and the files, unless Database or Files
	// name another place, and the metrics of workers, which need a Folder. It
	// is created, or closed to others; a folder of other files that others can
	// open is refused. One Service runs on a folder with SQLite.
	Folder string
	// Database is a PostgreSQL database ("postgres://…"), which several
	// services may share.
	Database string
	// Files is "file:///folder" or "s3://bucket?region=…".
	Files string
	// KeepSchema refuses tables that are out of date instead of changing them.
	KeepSchema bool
	// DatabaseWait is how long Open waits for an unreachable PostgreSQL.
	DatabaseWait time.Duration
	// DatabaseLimit limits a query or transaction; 0 means 4 s.
	DatabaseLimit time.Duration

	// Engine runs tasks in this process, one at a time; a crash of native code
	// then ends the process. nil leaves the tasks to Workers or to other
	// machines (`otograph work`).
	Engine Engine
	// Workers are processes that run tasks: a crash costs a task one attempt.
	Workers Workers
	// Live configures live sessions; the zero value serves none.
	Live Live
	// Prober determines an upload's length, for its hold. nil means the Engine
	// if it is one; without one, the price of UnknownLength is held.
	Prober Prober

	// KeepAudio is how long audio is kept after the end of its task.
	KeepAudio time.Duration
	// KeepTasks is how long a task and its result are kept after its end, at
	// least 24 h; 0 means forever.
	KeepTasks time.Duration
	// UnknownLength is the length of audio whose price is held while the actual
	// length is unknown; 0 means a minute.
	UnknownLength time.Duration

	// BasePath is the prefix of the endpoints; "" is "/v1".
	BasePath string
	// ModelAliases are further names of models for OpenAI's interface.
	ModelAliases map[string]string
	// StrictModels refuses, on these endpoints, the sizes of Whisper that no
	// worker has; otherwise they are names of the standard tier.
	StrictModels bool
	// Page serves all other paths; nil responds with 404.
	Page http.Handler
	// Ops adds /healthz, /readyz and /metrics to Handler.
	Ops bool
	// Hosts are the host names accepted in requests in addition to this
	// machine's (localhost, 127.0.0.1); nil accepts every name.
	Hosts []string
	// Origins are the origins ("https://app.example.com") whose pages may call
	// the API from a browser; "*" allows all, nil only the service's own.
	Origins []string
	// TrustedProxies are networks and addresses whose X-Forwarded-For header is
	// trusted. All clients of any other proxy count as one.
	TrustedProxies []string
	// FrontEnds is the number of services behind a load balancer, each with its
	// share of the rates. SharedRates keeps rates in the database instead.
	FrontEnds   int
	SharedRates bool

	// AllowOutbound allows non-public addresses in audio_url and callback_url:
	// networks ("10.0.0.0/8"), addresses, names ("nas.lan"). DenyOutbound
	// forbids addresses in them.
	AllowOutbound, DenyOutbound []string
	// Fetches limits the concurrent downloads of audio, FetchesPerAccount and
	// FetchesPerHost the downloads for one account and from one host; 0 means
	// 32, 4 and 8. A negative Fetches leaves downloads to other services.
	// FetchLimit limits one attempt; 0 means an hour.
	Fetches, FetchesPerAccount, FetchesPerHost int
	FetchLimit                                 time.Duration

	// MaxConnections limits the open connections of Serve,
	// ConnectionsPerAddress the connections from one address that is not a
	// trusted proxy; 0 means 4096 and 256.
	MaxConnections, ConnectionsPerAddress int
	// DrainDelay is how long Serve still responds at its end while /readyz
	// fails, so that load balancers notice.
	DrainDelay time.Duration
	// StallTimeout is how long an engine may work without a sign of progress,
	// in addition to a tenth of the audio's length, and how long a worker
	// process may take to start; 0 means 20 min. Then the attempt counts as
	// failed without a charge, and the process is replaced. Workers of other
	// machines have their own limit.
	StallTimeout time.Duration
	// Grace is the time for requests and tasks to finish; 0 means 30 s.
	Grace time.Duration

	// CallbackTail lists the delays of further deliveries of a callback after
	// the four of the specification have failed, each counted from the previous
	// one. It must be the same in all services on one database.
	CallbackTail []time.Duration

	// Version is the program's version, for lists of workers and metrics.
	Version string
	// Logger logs each request and each failure; nil discards them.
	Logger *slog.Logger
}

// Workers are processes that a Service keeps running. Each must call Work, and
// end when it returns, with the code of ExitCode.
type Workers struct {
	N        int      // processes; 0 runs none
	Command  []string // program and arguments
	Fallback []string // replaces Command after a crash, for example without a GPU's driver; empty means Command
	Env      []string // added to this process's environment
}

// Live configures live sessions. Their models work in a separate process, which
// calls Work with Host and Socket.
type Live struct {
	Process  Workers       // its N is 1
	Socket   string        // path of the Unix socket between the service and the process
	Sessions int           // at the same time; more are refused
	Longest  time.Duration // of a session; 0 means 1 h
	// Wyoming serves Home Assistant's protocol for the account WyomingAccount,
	// an id or name, because its clients have no credentials; nil does not.
	Wyoming        net.Listener
	WyomingAccount string
	// Host serves sessions in the process of the models, until ctx is done.
	Host func(ctx context.Context, l net.Listener) error
}

// ConfigError is returned by Open for an invalid field of Config.
type ConfigError struct {
	Field string
	err   error
}

// Error implements error.
func (e *ConfigError) Error() string { return "Config." + e.Field + " " + e.err.Error() }

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.err }

// shortestKeep is the least KeepTasks: as long as idempotency keys answer.
const shortestKeep = 24 * time.Hour

// check returns a *ConfigError for the first invalid field.
func (c *Config) check() error {
	wrong := func(field, format string, args ...any) error { return &ConfigError{field, fmt.Errorf(format, args...)} }
	switch {
	case c.Folder == "" && (c.Database == "" || c.Files == ""):
		return wrong("Folder", "is required, unless Database and Files are given")
	case c.KeepTasks != 0 && c.KeepTasks < shortestKeep:
		return wrong("KeepTasks", "is %s, expected at least %s", c.KeepTasks, shortestKeep)
	case c.UnknownLength < 0 || c.UnknownLength.Seconds() > spec.MaxAudioSeconds:
		return wrong("UnknownLength", "is %s, expected more than 0 and at most %s", c.UnknownLength, time.Duration(spec.MaxAudioSeconds*float64(time.Second)))
	case c.FetchesPerAccount < 0:
		return wrong("FetchesPerAccount", "is %d, expected a positive number", c.FetchesPerAccount)
	case c.FetchesPerHost < 0:
		return wrong("FetchesPerHost", "is %d, expected a positive number", c.FetchesPerHost)
	case c.FetchLimit < 0:
		return wrong("FetchLimit", "is %s, expected a positive duration", c.FetchLimit)
	case len(c.CallbackTail) > 0 && slices.Min(c.CallbackTail) <= 0:
		return wrong("CallbackTail", "has %s, expected positive durations", slices.Min(c.CallbackTail))
	case c.StallTimeout < 0:
		return wrong("StallTimeout", "is %s, expected a positive duration", c.StallTimeout)
	case c.Grace < 0:
		return wrong("Grace", "is %s, expected a positive duration", c.Grace)
	case c.Workers.N > 0 && len(c.Workers.Command) == 0:
		return wrong("Workers", "has no Command")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Prober == nil {
		c.Prober, _ = c.Engine.(Prober)
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.FrontEnds = cmp.Or(c.FrontEnds, 1)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	return c
}
