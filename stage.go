package otograph

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Checkpoints keep finished stages of a run, so that an interrupted run
// continues where it stopped. They must belong to one recording, one set of
// options and one set of models.
type Checkpoints interface {
	// Load returns what was saved for a stage, nil when there is nothing.
	Load(ctx context.Context, stage string) ([]byte, error)
	// Save keeps data for a stage in place of what was there.
	Save(ctx context.Context, stage string, data []byte) error
}

// stage runs one stage, measures it, reports its end and names it in its error.
// The zero value comes with an error.
func stage[T any](ctx context.Context, r *run, s Stage, work func(context.Context) (T, error)) (T, error) {
	start := time.Now()
	found, err := work(ctx)
	r.progress.Ended(s, time.Since(start), err == nil)
	if err == nil {
		return found, nil
	}
	r.Log.DebugContext(ctx, "stage failed", "stage", s, "error", err)
	var none T
	return none, &StageError{Stage: s, Err: err}
}

// keptStage is stage for work that the run's checkpoints keep.
func keptStage[T any](ctx context.Context, r *run, s Stage, work func(context.Context) (T, error)) (T, error) {
	return stage(ctx, r, s, checkpoint(r, s, work))
}

// splitSuffix follows the name of a stage whose checkpoint is that of split channels.
const splitSuffix = ".channels"

// checkpoint wraps a stage's work: it returns what the run's checkpoints hold for the
// stage, or does the work and saves its result. Without checkpoints it is the work
// itself. Trouble with the checkpoints does not fail the work; it is logged.
func checkpoint[T any](r *run, s Stage, work func(context.Context) (T, error)) func(context.Context) (T, error) {
	c := r.checkpoints
	if c == nil {
		return work
	}
	name := string(s)
	if r.sound.split != nil {
		name += splitSuffix
	}
	return func(ctx context.Context) (T, error) {
		data, err := c.Load(ctx, name)
		var found T
		switch {
		case err != nil:
			r.Log.WarnContext(ctx, "checkpoint not read", "stage", s, "error", err)
		case data == nil:
		case json.Unmarshal(data, &found) != nil:
			r.Log.WarnContext(ctx, "checkpoint not understood", "stage", s)
		default:
			return found, nil
		}
		if found, err = work(ctx); err != nil {
			return found, err
		}
		if data, err = json.Marshal(found); err == nil {
			err = c.Save(ctx, name, data)
		}
		if err != nil {
			r.Log.WarnContext(ctx, "checkpoint not saved", "stage", s, "error", err)
		}
		return found, nil
	}
}

// unstage takes the stage's name off an error.
func unstage(err error) error {
	if s := (*StageError)(nil); errors.As(err, &s) {
		return s.Err
	}
	return err
}
