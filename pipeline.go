// Package otograph transcribes recordings and detects speakers and sounds.
//
// A Pipeline holds models and runs recordings through them:
//
//	p, err := otograph.OpenDefault()
//	if err != nil { … }
//	defer p.Close()
//	res, err := p.Run(ctx, otograph.File("meeting.m4a"), otograph.Options{})
//	if err != nil { … }
//	err = subtitle.WriteFile("meeting.srt", res)
//
// The stages are: decode → voice activity → language → transcription (the
// standard tier on Whisper models, or the optimized tier on small CTC-type
// models), in parallel with sound events and voice embeddings → speakers.
// Options is the same object that the HTTP service accepts.
//
// Positions and lengths in a recording are seconds as float64, as in the JSON of
// a Result; time.Duration is time on a clock.
//
// ONNX Runtime, and libwhisper for a GPU, are opened on first use. A program
// builds and starts without them; the error of a run then suggests a remedy.
package otograph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/spec"
)

// ErrClosed is returned by methods of a Pipeline that has been closed.
var ErrClosed = errors.New("pipeline is closed")

// Pipeline runs recordings through a set of models. It is safe for concurrent
// use; runs share the models and the budget of cores.
type Pipeline struct {
	config  Config // with its defaults
	engines *engines.Engines
	gate    *semaphore.Weighted // one unit per core; held while a core computes

	alive context.Context // ends when Close begins
	stop  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
	free   sync.Once
	freed  error
}

// Open returns a pipeline that uses a set of models. Models are loaded when a
// run first needs them; Load does it ahead of time. At most one Config is used.
func Open(set *models.Set, config ...Config) (*Pipeline, error) {
	if set == nil || len(set.Models) == 0 {
		return nil, fmt.Errorf("%w: the set contains no model", models.ErrMissing)
	}
	c := last(config).withDefaults()
	if _, err := recognizers.ParseDevice(c.Device); err != nil {
		return nil, err
	}
	p := &Pipeline{config: c, gate: semaphore.NewWeighted(int64(c.Cores)), engines: engines.New(set, engines.Options{
		Cores: c.Cores, Logger: c.Logger, Device: c.Device, Languages: c.OptimizedLanguages,
		Choice: c.Choice.Models, Keep: engines.Keeping{Idle: c.Choice.Keep, Memory: c.Choice.Memory},
	})}
	p.alive, p.stop = context.WithCancelCause(context.Background())
	return p, nil
}

// OpenDefault returns a pipeline with the models of the default folder
// (library.DefaultDir), which `otograph models pull` fills, and the embedded
// published models for the other roles, except transcription. Load finds a
// missing ONNX Runtime or a broken model; without it, the first run does.
func OpenDefault(config ...Config) (*Pipeline, error) {
	set, err := library.Load{Fallback: published.Models()}.OrDefaultDir().Open()
	if err != nil {
		return nil, err
	}
	return Open(set, config...)
}

// Models returns the set with which the pipeline was opened.
func (p *Pipeline) Models() *models.Set { return p.engines.Set }

// Available returns the tiers and languages of the pipeline's models.
func (p *Pipeline) Available() spec.Available { return p.engines.Available }

// Settings returns the options of Open that affect results, besides the models.
// Checkpoints are valid for pipelines with the same models and settings.
func (p *Pipeline) Settings() string {
	c := p.config
	text := fmt.Sprintf("words=%t confidences=%t cascade=%g languages=%s", c.OptimizedWords, !c.NoConfidences, *c.Cascade, strings.Join(c.OptimizedLanguages, ","))
	for _, m := range c.Choice.Models {
		text += fmt.Sprintf(" %s=%s/%d", m.Name, m.Main().SHA256, m.Main().Size)
	}
	return text
}

// Load opens the models of the given roles now; without any, of all that the
// set fills. Errors name the file, its role, the expected and the actual value.
func (p *Pipeline) Load(ctx context.Context, roles ...models.Role) error {
	done, err := p.enter()
	if err != nil {
		return err
	}
	defer done()
	if len(roles) == 0 {
		roles = slices.DeleteFunc(models.Roles(), func(role models.Role) bool { return len(p.engines.Set.All(role)) == 0 })
	}
	return p.engines.Load(ctx, roles)
}

// enter registers a caller, for which Close waits until done is called.
func (p *Pipeline) enter() (done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	p.runs.Add(1)
	return p.runs.Done, nil
}

// begin registers a run and returns the context of its work, which also ends
// when Close begins; leave unregisters it.
func (p *Pipeline) begin(ctx context.Context) (_ context.Context, leave func(), err error) {
	done, err := p.enter()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.alive, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		done()
	}, nil
}

// stages returns the stages of a run with these options and engines.
func (p *Pipeline) stages(opt EffectiveOptions, e *engines.Engines) *stages.Stages {
	c := p.config
	return &stages.Stages{Engines: e, Options: opt, Cores: c.Cores, Gate: p.gate, Log: c.Logger, OptimizedWords: c.OptimizedWords, Cascade: *c.Cascade}
}

// Close stops running calls (they return ErrClosed), waits for them and frees
// the models. It may be called more than once.
func (p *Pipeline) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop(ErrClosed)
	p.runs.Wait()
	p.free.Do(func() { p.freed = p.engines.Close() })
	return p.freed
}

// Source is a recording: a file, a stream or samples.
type Source = audio.Source

// File returns the recording in a file of any supported format.
func File(path string) Source { return audio.File(path) }
