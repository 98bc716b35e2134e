// Package stages implements the stages of a run: each stage takes the findings
// of earlier stages and returns its own, plain values that checkpoints keep. It
// also decides which speech in a channel is its speaker's and which text the
// sound contradicts. Package otograph decides when each runs.
package stages

import (
	"context"
	"log/slog"

	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/spec"
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
