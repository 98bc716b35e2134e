package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/otograph/otograph/spec"
)

// ErrTranslation refuses a translation if some registered worker cannot
// translate, because any worker may claim the task. While no worker has
// reported its models, nothing is refused.
var ErrTranslation = errors.New("not all installed models can translate")

// ErrModel refuses a task if some registered worker lacks the model that it
// names.
var ErrModel = errors.New("not all workers have the model")

// naming returns the capabilities of the sets of models with the model that a
// task names, "" for none.
func naming(model string, sets []spec.Available) ([]spec.Available, error) {
	if model == "" {
		return sets, nil
	}
	var out []spec.Available
	for _, set := range sets {
		only, known := set.Only(model)
		if !known {
			return nil, fmt.Errorf("%w %s", ErrModel, model)
		}
		out = append(out, only)
	}
	return out, nil
}

// stillNaming is naming for an accepted task. If a worker lacks the model now,
// the task is priced like one that names none.
func stillNaming(model string, sets []spec.Available) []spec.Available {
	if only, err := naming(model, sets); err == nil {
		return only
	}
	return sets
}

// Available returns the capabilities of the registered workers' sets of models;
// empty while no worker has reported.
func (s *Service) Available(ctx context.Context) ([]spec.Available, error) {
	sets, err := s.queue.Available(ctx, s.DB.Read())
	return sets, s.wrap("models", err)
}

// canTranslate reports whether every set of models translates. It is true if no
// set is known.
func canTranslate(sets []spec.Available) bool {
	return !slices.ContainsFunc(sets, func(a spec.Available) bool { return !a.Translates })
}
