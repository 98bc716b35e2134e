// Package otograph transcribes recordings, identifies speakers and detects
// sounds.
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
// builds and starts without them; if one is missing, the error suggests a
// remedy.
package otograph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/spec"
)

// CascadeBelow is the confidence below which the cascade decodes a segment of
// the optimized tier again; docs/performance.md explains the choice.
const CascadeBelow = 0.85

// ErrClosed is returned by methods of a Pipeline that has been closed.
var ErrClosed = errors.New("pipeline is closed")

// Pipeline runs recordings through a set of models. It is safe for concurrent
// use; runs share the models and the budget of cores.
type Pipeline struct {
	engines *engines.Engines
	cores   int
	gate    *semaphore.Weighted // one unit per core; held while a core computes
	audio   audio.Options
	log     *slog.Logger

	optimizedWords bool            // in the segments of the optimized tier
	noConfidences  bool            // in the segments
	cascade        float64         // the confidence below which the standard tier decodes again
	models         engines.Options // of the engines

	alive context.Context // ends when Close begins
	stop  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
	free   sync.Once
	freed  error
}

// Option configures a Pipeline.
type Option func(*Pipeline)

// WithCores limits the cores of the pipeline: each run uses at most n threads,
// and at most n computations of all runs proceed at a time. A computation of a
// short recording may have several threads, so concurrent runs may have more
// than n. The default is the number of cores available to the Go runtime.
func WithCores(n int) Option {
	return func(p *Pipeline) {
		if n > 0 {
			p.cores = n
		}
	}
}

// WithLogger sets the logger for messages of the stages and the native
// libraries, mostly at debug level. By default nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(p *Pipeline) { p.log = log } }

// WithAudio sets the limits and paths of the decoder; the default is the
// specification's limits: 1 KB to 2 GB, at most 5 hours.
func WithAudio(o audio.Options) Option { return func(p *Pipeline) { p.audio = o } }

// WithOptimizedWords sets whether the segments of the optimized tier also
// contain words with their times and probabilities when a run requests words.
// Without it that tier only has segments, as in the service's specification.
func WithOptimizedWords(on bool) Option { return func(p *Pipeline) { p.optimizedWords = on } }

// WithConfidences sets whether segments have a Confidence if their model is
// calibrated; the default is true. The service's specification has none.
func WithConfidences(on bool) Option { return func(p *Pipeline) { p.noConfidences = !on } }

// WithCascade sets the confidence below which the standard tier decodes a
// segment of the optimized tier again and the better text is kept; the set must
// have models of both tiers. The default is CascadeBelow; 0 disables the
// cascade, even for segments in another language than the recording's.
// Stats.Cascade counts the work. A model without a calibration has no
// confidence: its segments are only decoded again if they are in another
// language.
func WithCascade(below float64) Option { return func(p *Pipeline) { p.cascade = below } }

// WithDevice sets the device of the standard tier's model: "auto", the default,
// is a GPU for which ggml has a plug-in, or else the CPU; "cpu"; "vulkan" or
// "vulkan:N". If the device is missing or fails, the CPU takes over, with an
// entry in Result.Warnings.
func WithDevice(name string) Option { return func(p *Pipeline) { p.models.Device = name } }

// WithOptimizedLanguages restricts the optimized tier to the given languages
// (ISO 639-1). Without any language, that tier serves every language that its
// models list; spec.OptimizedLanguages returns the specification's.
func WithOptimizedLanguages(codes ...string) Option {
	return func(p *Pipeline) { p.models.Languages = codes }
}

// Choice configures further recognizers, which runs select by name (WithModel),
// and how long a pipeline's recognizers stay loaded.
type Choice struct {
	// Models holds the recognizers; library.Recognizers returns a folder's.
	Models []models.Model
	// Keep is how long an unused recognizer stays loaded; 0 means until Close.
	Keep time.Duration
	// Memory limits the total file size of the loaded recognizers in bytes; 0
	// means no limit. A larger model cannot be selected. A run waits for memory
	// that others use; a run that needs two recognizers may exceed the limit.
	Memory int64
}

// WithChoice lets runs select a recognizer.
func WithChoice(c Choice) Option {
	return func(p *Pipeline) {
		p.models.Choice, p.models.Keep = c.Models, engines.Keeping{Idle: c.Keep, Memory: c.Memory}
	}
}

// Open returns a pipeline that uses a set of models. Models are loaded when a
// run first needs them; Load does it ahead of time.
func Open(set *models.Set, options ...Option) (*Pipeline, error) {
	if set == nil || len(set.Models) == 0 {
		return nil, fmt.Errorf("%w: the set contains no model", models.ErrMissing)
	}
	p := &Pipeline{cores: runtime.GOMAXPROCS(0), log: slog.New(slog.DiscardHandler), cascade: CascadeBelow}
	for _, o := range options {
		o(p)
	}
	if err := whisper.CheckDevice(p.models.Device); err != nil {
		return nil, err
	}
	p.gate = semaphore.NewWeighted(int64(p.cores))
	p.models.Cores, p.models.Logger = p.cores, p.log
	p.engines = engines.New(set, p.models)
	p.alive, p.stop = context.WithCancelCause(context.Background())
	return p, nil
}

// OpenDefault returns a pipeline with the models of the default folder
// (library.DefaultDir), which `otograph models pull` fills, and the embedded
// published models for the other roles, except transcription.
func OpenDefault(options ...Option) (*Pipeline, error) {
	set, err := library.Load{Fallback: published.Models()}.OrDefaultDir().Open()
	if err != nil {
		return nil, err
	}
	return Open(set, options...)
}

// Models returns the set with which the pipeline was opened.
func (p *Pipeline) Models() *models.Set { return p.engines.Set }

// Available returns the tiers and languages of the pipeline's models.
func (p *Pipeline) Available() spec.Available { return p.engines.Available }

// Settings returns the options of Open that affect results, apart from the
// models. Stages saved by WithCheckpoints are valid for pipelines with the same
// models and settings.
func (p *Pipeline) Settings() string {
	text := fmt.Sprintf("words=%t confidences=%t cascade=%g languages=%s", p.optimizedWords, !p.noConfidences, p.cascade, strings.Join(p.models.Languages, ","))
	for _, m := range p.models.Choice {
		text += fmt.Sprintf(" %s=%s/%d", m.Name, m.Main().SHA256, m.Main().Size)
	}
	return text
}

// Load opens the models of the given roles now; without any, of all roles that
// the set fills. Errors state the file, the role, the expectation and the
// finding.
func (p *Pipeline) Load(ctx context.Context, roles ...models.Role) error {
	done, err := p.enter()
	if err != nil {
		return err
	}
	defer done()
	if len(roles) == 0 {
		for _, role := range models.Roles() {
			if _, ok := p.engines.Set.Role(role); ok {
				roles = append(roles, role)
			}
		}
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
// when Close begins; leave ends the registration.
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
	return &stages.Stages{Engines: e, Options: opt, Cores: p.cores, Gate: p.gate, Log: p.log, OptimizedWords: p.optimizedWords, Cascade: p.cascade}
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
