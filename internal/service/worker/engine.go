// Package worker runs tasks: a Worker is one process that runs one task at a
// time with an Engine, and a Supervisor keeps such processes running, so that a
// crash or hang of native code costs one attempt of one task.
package worker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// Engine turns a local audio file into a result. Errors caused by the input are
// marked with spec.Permanent (or have a method Permanent() bool that returns
// true); all others are retried.
type Engine interface {
	// Run runs one task. It must return within seconds after ctx is done;
	// otherwise the process is ended.
	Run(ctx context.Context, job Job) (tasks.Outcome, error)
	// ModelSet identifies models and version, to which checkpoints belong.
	ModelSet() string
}

// Job is the input of an Engine's run.
type Job struct {
	TaskID   string
	Path     string // path of the audio, for this process to read
	Filename string // the customer's name of the file
	Options  spec.EffectiveOptions
	Extras   tasks.Extras // beside the options
	Voices   []string     // paths of the recordings of Extras.Voices
	// Register reads the account's current known voices; nil unless the task
	// asks for them. An engine calls it only when it needs them: a voice
	// deleted before then names no speaker. Vectors are cleared after the run.
	Register    func(context.Context) (*voices.Register, error)
	Checkpoints Checkpoints
	Progress    func(stage string, done float64) // never nil; done is 0 to 1
	// Working is called between reports of progress, possibly concurrently, as
	// often as the engine can; never nil. A run that calls neither it nor
	// Progress for too long is ended (Config.StallTimeout).
	Working  func()
	Segments func([]spec.Segment) // never nil; takes the sentences since the last call
	// MaxSeconds is the longest audio that the account can pay for and that the
	// service accepts. An engine stops decoding at this length, even if the
	// container states another one, and returns ErrUnpaid.
	MaxSeconds float64
	// Decoded is called with the exact length before any work that costs more
	// than decoding; never nil. Run returns Decoded's error, which means that
	// the account cannot pay for this length.
	Decoded func(seconds float64) error
}

// ErrUnpaid is returned by an Engine for audio beyond Job.MaxSeconds.
var ErrUnpaid = errors.New("audio longer than what can be paid")

// Checkpoints keep finished stages of a task across attempts. They belong to
// its audio, options and model set, and are deleted when the task is final.
type Checkpoints interface {
	// Load returns the data saved for a stage, nil if there is none.
	Load(ctx context.Context, stage string) ([]byte, error)
	// Save saves data for a stage (a-z, 0-9, "-", "_", "."), replacing any.
	Save(ctx context.Context, stage string, data []byte) error
}

// checkpoints stores a task's stages as files. The folder's name is a hash of
// model set, options and audio, so that no other attempt sees them.
type checkpoints struct {
	blobs  *blob.Store
	prefix string
}

func newCheckpoints(blobs *blob.Store, c *tasks.Claim, modelSet string) (*checkpoints, error) {
	options, err := json.Marshal(c.Options)
	if err != nil {
		return nil, err
	}
	extras, err := json.Marshal(c.Extras.Extras)
	if err != nil {
		return nil, err
	}
	audioMD5 := *cmp.Or(c.AudioMD5, new(""))
	sum := sha256.New()
	for _, part := range []string{modelSet, audioMD5, string(options), string(extras)} {
		fmt.Fprintf(sum, "%d:%s,", len(part), part)
	}
	return &checkpoints{blobs: blobs, prefix: tasks.CheckpointPrefix(c.ID) + hex.EncodeToString(sum.Sum(nil)[:8]) + "/"}, nil
}

var validStage = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Load implements Checkpoints.
func (c *checkpoints) Load(ctx context.Context, stage string) ([]byte, error) {
	if !validStage.MatchString(stage) {
		return nil, fmt.Errorf("worker: checkpoint %q: name is not valid", stage)
	}
	r, err := c.blobs.Open(ctx, c.prefix+stage)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Save implements Checkpoints.
func (c *checkpoints) Save(ctx context.Context, stage string, data []byte) error {
	if !validStage.MatchString(stage) {
		return fmt.Errorf("worker: checkpoint %q: name is not valid", stage)
	}
	return c.blobs.Put(ctx, c.prefix+stage, bytes.NewReader(data))
}

// DefaultStall is how long an engine may work without a sign of progress, in
// addition to a tenth of the audio's length: longer than the slowest steps:
// loading a large model, its pass over 30 s of audio on one slow core, ffmpeg's
// limit of 15 min. Steps that grow with the length (decoding, speech detection)
// take less than a hundredth of it.
const DefaultStall = 20 * time.Minute

// stallShare is the share of the audio's length that extends the limit.
const stallShare = 0.1

// stallError ends a run without progress, which is not the recording's fault:
// most likely a call of native code hangs.
type stallError struct{ limit time.Duration }

// Error is the text that the customer reads.
func (e stallError) Error() string {
	return fmt.Sprintf("a failure of the service's engine: no progress for %s; nothing is charged", e.limit.Round(time.Second))
}

// watchStall returns a context for the engine's run on a recording of the given
// length, and the job: the context is canceled with a stallError after too long
// without Progress, Working or Decoded. Call stop after the run.
func watchStall(ctx context.Context, limit time.Duration, seconds float64, job Job) (run context.Context, watched Job, stop func()) {
	run, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	allowed := func() time.Duration { return limit + time.Duration(seconds*stallShare*float64(time.Second)) }
	timer := time.AfterFunc(allowed(), func() {
		mu.Lock()
		defer mu.Unlock()
		cancel(stallError{allowed()})
	})
	alive := func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Reset(allowed())
	}
	watched = job
	watched.Progress = func(stage string, done float64) {
		alive()
		job.Progress(stage, done)
	}
	watched.Working = alive
	watched.Decoded = func(length float64) error {
		mu.Lock()
		seconds = length
		mu.Unlock()
		alive()
		return job.Decoded(length)
	}
	return run, watched, func() {
		timer.Stop()
		cancel(nil)
	}
}
