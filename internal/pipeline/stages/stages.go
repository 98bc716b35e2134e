// Package stages implements the stages of a run: each stage takes the findings
// of earlier stages and returns its own, plain values that checkpoints keep. It
// also decides which speech in a channel is its speaker's and which text the
// sound contradicts. Package otograph decides when each runs.
package stages

import (
	"context"
	"log/slog"

	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// Stages holds the settings of a run and the models of its stages.
type Stages struct {
	Engines *engines.Engines
	Options spec.EffectiveOptions
	Cores   int
	Gate    *semaphore.Weighted // one unit for each core, held while a core computes
	Log     *slog.Logger

	OptimizedWords bool     // requests words in the segments of the optimized tier
	Translate      bool     // into English
	Among          []string // languages from which detection chooses; empty means all
	Spoken         bool     // the recording is known to have speech, before this part of it
	Cascade        float64  // the confidence below which the standard tier decodes again

	Working func() // called after each pass of a model, possibly concurrently; may be nil
	// Embedded receives the share of StageEmbed that is done; may be nil.
	Embedded func(share float64)
}

// compute loads a model, waits for a core and calls work with the model.
func compute[E, T any](ctx context.Context, gate *semaphore.Weighted, load func() (E, error), work func(E) (T, error)) (T, error) {
	var none T
	engine, err := load()
	if err != nil {
		return none, err
	}
	if err := gate.Acquire(ctx, 1); err != nil {
		return none, err
	}
	defer gate.Release(1)
	return work(engine)
}

// Session is the part of a run that package live drives, utterance by utterance.
type Session struct {
	*Stages
	// Known are the known voices.
	Known *voices.Register
	// Segments returns the sentences of findings, as in a Result.
	Segments func(f *Findings, pcm *audio.PCM) []spec.Segment
	// Result assembles the result of a whole recording.
	Result func(pcm *audio.PCM, f *Findings) *spec.Result
	// End ends the session. It must be called once.
	End func()
}

// OpenSession checks options, as Pipeline.Run does, and returns a session of an
// *otograph.Pipeline, with the context of its work, which also ends when the
// pipeline is closed. more are otograph.RunOptions. Package otograph, which
// defines pipelines, sets OpenSession.
var OpenSession func(ctx context.Context, pipeline any, options spec.Options, more any) (*Session, context.Context, error)
