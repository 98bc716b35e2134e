package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph/spec"
)

// ErrTranslation refuses a translation if some registered worker cannot
// translate, because any worker may claim the task. While no worker has
// reported its models, nothing is refused.
var ErrTranslation = errors.New("not all installed models can translate")

// ErrModel refuses a task that names a model which some worker lacks.
var ErrModel = errors.New("not all workers have the model")

// naming returns the capabilities of the sets of models with the model that a
// task names, "" for none.
func naming(model string, sets []spec.Available) ([]spec.Available, error) {
	if model == "" {
		return sets, nil
	}
	var out []spec.Available
	for _, set := range sets {
		only, ok := set.Only(model)
		if !ok {
			return nil, fmt.Errorf("%w %s", ErrModel, model)
		}
		out = append(out, only)
	}
	return out, nil
}

// stillNaming is naming for an accepted task. If a worker now lacks the model,
// the task is priced as without a named model.
func stillNaming(model string, sets []spec.Available) []spec.Available {
	if only, err := naming(model, sets); err == nil {
		return only
	}
	return sets
}

// Available returns the capabilities of the registered workers' sets of models;
// empty while no worker has reported.
func (s *Owners) Available(ctx context.Context) ([]spec.Available, error) {
	sets, err := s.queue.Available(ctx, s.Config.DB.Read())
	return sets, s.wrap("models", err)
}

// LanguageError refuses a task whose language no model of the registered
// workers knows. While no worker has reported its models, nothing is refused.
type LanguageError struct {
	Language  string   // the requested language
	Installed []string // codes that some worker's models support with the task's options
}

// Error implements error. The text is shown to the customer.
func (e *LanguageError) Error() string {
	return fmt.Sprintf("asr_language: no installed model supports %q; installed: %s", e.Language, strings.Join(e.Installed, ", "))
}

// checkLanguage returns a LanguageError if no set supports the language of the
// options, or any of the languages that detection would choose from.
func checkLanguage(o spec.Options, among []string, sets []spec.Available) error {
	if o.ASRLanguage == nil && among == nil || !on(o.EnableASR) || len(sets) == 0 {
		return nil
	}
	if o.ASRLanguage != nil && len(spec.PossibleTiers(o, sets)) > 0 {
		return nil
	}
	e := &LanguageError{Language: strings.Join(among, ", ")}
	if o.ASRLanguage != nil {
		e.Language = *o.ASRLanguage
	}
	for _, set := range sets {
		e.Installed = append(e.Installed, set.Languages(o)...)
	}
	if slices.ContainsFunc(e.Installed, func(code string) bool { return slices.Contains(among, code) }) {
		return nil
	}
	slices.Sort(e.Installed)
	e.Installed = slices.Compact(e.Installed)
	return e
}
