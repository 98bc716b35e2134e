// Package worker runs tasks: a Worker is one process that works on one task at a
// time with an Engine, and a Supervisor keeps such processes running, so that
// native code that crashes or hangs costs one attempt of one task.
package worker

import (
	"context"
	"errors"
	"net/http"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/spec"
)

// Engine turns a local audio file into a result. Errors that are the input's fault are marked with spec.Permanent (or have a
// method Permanent() bool that says true); all others are retried.
type Engine interface {
	// Run works on one task. It honors ctx within seconds; one that does not come back costs the process.
	Run(ctx context.Context, job Job) (tasks.Outcome, error)
	// ModelSet identifies models and version: checkpoints of one set are never given to another.
	ModelSet() string
}

// Job is what an Engine is given.
type Job struct {
	TaskID   string
	Path     string // of the audio, for reading
	Filename string // as the customer named it
	Options  spec.EffectiveOptions
	Extras   tasks.Extras // beside the options
	Voices   []string     // paths of the recordings of Extras.Voices
	// Known reads the voices that the account knows at this moment; nil unless the task
	// asks for them. An engine calls it when it needs them, so that a voice deleted
	// before that names nobody. Their vectors are cleared when the run has ended.
	Known       func(context.Context) (*diarize.Register, error)
	Checkpoints Checkpoints
	Progress    func(stage string, done float64) // never nil; done is 0 to 1
	Segments    func([]spec.Segment)             // never nil; takes the sentences that follow those it took before
	// MaxSeconds is the longest audio that the account can pay for, and that is taken at all. An engine stops decoding
	// there, whatever the container says, and returns ErrUnpaid.
	MaxSeconds float64
	// Decoded is called with the exact length before work begins that costs more than decoding; never nil. Its error, when
	// the account cannot pay for that length, is returned by Run.
	Decoded func(seconds float64) error
}

// ErrUnpaid is returned by an Engine for audio that is longer than Job.MaxSeconds.
var ErrUnpaid = errors.New("audio longer than what can be paid")

// Checkpoints keep finished work of a task across attempts. They belong to the task's audio, its options and the engine's
// model set; they are gone when the task is final.
type Checkpoints interface {
	// Load returns what was saved for a stage, nil when there is nothing.
	Load(ctx context.Context, stage string) ([]byte, error)
	// Save keeps data for a stage (lower-case letters, digits, "-", "_", "."), in place of what was there.
	Save(ctx context.Context, stage string, data []byte) error
}

// HTTPDoer makes outbound requests; the service hands in clients that can't be turned inwards.
type HTTPDoer interface {
	Do(*http.Request) (*http.Response, error)
}
