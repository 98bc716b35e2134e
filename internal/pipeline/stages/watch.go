package stages

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/spec"
)

// Watch monitors a run's stages: their time, progress and checkpoints.
type Watch struct {
	Progress
	// Checkpoints store stages' results, one call at a time; nil stores none.
	Checkpoints interface {
		Load(ctx context.Context, stage string) ([]byte, error)
		Save(ctx context.Context, stage string, data []byte) error
	}
	storing sync.Mutex // held while a method of Checkpoints runs
	// Split reports that channels are split, with separate checkpoints.
	Split bool
	Log   *slog.Logger
}

// Do runs one stage, measures it, reports its end and names the stage in its
// error. With an error, the value is zero.
func Do[T any](ctx context.Context, w *Watch, s spec.Stage, work func(context.Context) (T, error)) (T, error) {
	start := time.Now()
	result, err := work(ctx)
	w.Ended(s, time.Since(start), err == nil)
	if err == nil {
		return result, nil
	}
	w.Log.DebugContext(ctx, "stage failed", "stage", s, "error", err)
	var none T
	return none, &spec.StageError{Stage: s, Err: err}
}

// Keep is Do for work whose result the checkpoints keep. A checkpoint error
// does not fail the work; it is logged.
func Keep[T any](ctx context.Context, w *Watch, s spec.Stage, work func(context.Context) (T, error)) (T, error) {
	return Do(ctx, w, s, checkpoint(w, s, work))
}

// splitSuffix is appended to the stage's name in checkpoints of split channels.
const splitSuffix = ".channels"

// checkpoint returns work whose result is loaded from the checkpoints or saved.
func checkpoint[T any](w *Watch, s spec.Stage, work func(context.Context) (T, error)) func(context.Context) (T, error) {
	if w.Checkpoints == nil {
		return work
	}
	name := string(s)
	if w.Split {
		name += splitSuffix
	}
	return func(ctx context.Context) (T, error) {
		w.storing.Lock()
		data, err := w.Checkpoints.Load(ctx, name)
		w.storing.Unlock()
		var result T
		switch {
		case err != nil:
			w.Log.WarnContext(ctx, "checkpoint not read", "stage", s, "error", err)
		case data == nil:
		case json.Unmarshal(data, &result) != nil:
			w.Log.WarnContext(ctx, "checkpoint not understood", "stage", s)
		default:
			return result, nil
		}
		if result, err = work(ctx); err != nil {
			return result, err
		}
		if data, err = json.Marshal(result); err == nil {
			w.storing.Lock()
			err = w.Checkpoints.Save(ctx, name, data)
			w.storing.Unlock()
		}
		if err != nil {
			w.Log.WarnContext(ctx, "checkpoint not saved", "stage", s, "error", err)
		}
		return result, nil
	}
}

// Cause removes the stage's name from an error.
func Cause(err error) error {
	if s := (*spec.StageError)(nil); errors.As(err, &s) {
		return s.Err
	}
	return err
}

func (s *Stages) working() {
	if s.Working != nil {
		s.Working()
	}
}

// embeddedAtOnce is the number of windows of a call of the embedder.
const embeddedAtOnce = 64

// workingEmbedder is an embedder that reports each call.
type workingEmbedder struct {
	diarize.Embedder
	stages *Stages
}

// Embed implements diarize.Embedder.
func (e workingEmbedder) Embed(ctx context.Context, pcm *audio.PCM, windows []audio.Span) (all [][]float32, err error) {
	for part := range slices.Chunk(windows, embeddedAtOnce) {
		more, err := e.Embedder.Embed(ctx, pcm, part)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
		e.stages.working()
		if e.stages.Embedded != nil {
			e.stages.Embedded(float64(len(all)) / float64(len(windows)))
		}
	}
	return all, nil
}

// workingSegmenter is a segmenter that reports each call.
type workingSegmenter struct {
	diarize.Segmenter
	working func()
}

// Segment implements diarize.Segmenter.
func (s workingSegmenter) Segment(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([]diarize.Activity, error) {
	defer s.working()
	return s.Segmenter.Segment(ctx, pcm, windows)
}
