package otograph

import (
	"context"
	"encoding/json"
	"log/slog"
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

// checkpoint wraps a stage's work: it returns what c holds for the stage, or
// does the work and saves what it found. Without checkpoints it is the work
// itself. Trouble with the checkpoints does not fail the work; it is logged.
func checkpoint[T any](c Checkpoints, log *slog.Logger, s Stage, work func(context.Context) (T, error)) func(context.Context) (T, error) {
	if c == nil {
		return work
	}
	return func(ctx context.Context) (T, error) {
		data, err := c.Load(ctx, string(s))
		var found T
		switch {
		case err != nil:
			log.WarnContext(ctx, "checkpoint not read", "stage", s, "error", err)
		case data == nil:
		case json.Unmarshal(data, &found) != nil:
			log.WarnContext(ctx, "checkpoint not understood", "stage", s)
		default:
			return found, nil
		}
		if found, err = work(ctx); err != nil {
			return found, err
		}
		if data, err = json.Marshal(found); err == nil {
			err = c.Save(ctx, string(s), data)
		}
		if err != nil {
			log.WarnContext(ctx, "checkpoint not saved", "stage", s, "error", err)
		}
		return found, nil
	}
}
