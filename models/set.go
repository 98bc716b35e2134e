package models

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph/spec"
)

// Set is a collection of models, with at most one per role except for
// RoleOptimized, which may have several for different languages.
type Set struct {
	// Name names the set in lists and errors.
	Name   string
	Models []Model
	// Ignored holds the reason for each file of a folder that looked like a
	// model but serves no role, for display.
	Ignored []error
}

// Role returns the first model of a role. A nil Set has none.
func (s *Set) Role(role Role) (*Model, bool) {
	if all := s.All(role); len(all) > 0 {
		return all[0], true
	}
	return nil, false
}

// All returns every model of a role, in the order of the set.
func (s *Set) All(role Role) []*Model {
	if s == nil {
		return nil
	}
	var all []*Model
	for i := range s.Models {
		if s.Models[i].Role == role {
			all = append(all, &s.Models[i])
		}
	}
	return all
}

// Need returns the model of a role, or an ErrMissing that names the role and
// the set and suggests a remedy.
func (s *Set) Need(role Role) (*Model, error) {
	if m, ok := s.Role(role); ok {
		return m, nil
	}
	name := "the set"
	if s != nil && s.Name != "" {
		name = fmt.Sprintf("set %q", s.Name)
	}
	return nil, fmt.Errorf("%w: role %s: %s has no model for it (expected %s); run `otograph models pull` or pass --%[2]s-model FILE",
		ErrMissing, role, name, strings.Join(ContractsOf(role), ", "))
}

// OptimizedFor returns the optimized tier's model for a language (ISO 639-1).
// Of the models that list the language, it prefers the one with the fewest
// languages, because a model for one language is better than a model for many;
// then models that list none. It returns false if none supports the language.
func (s *Set) OptimizedFor(language string) (*Model, bool) {
	return s.bestFor(language, func(*Model) bool { return true })
}

// AlignerFor returns the model that times the words of a language:
// OptimizedFor's choice among the models with a CTC output. It returns false if
// there is no such model, even if a transducer, a Paraformer or Moonshine
// transcribes the language.
func (s *Set) AlignerFor(language string) (*Model, bool) {
	return s.bestFor(language, func(m *Model) bool {
		return !slices.Contains([]string{ContractNeMoTransducer, ContractGigaAMTransducer, ContractIcefallTransducer, ContractParaformer, ContractMoonshine}, m.Contract)
	})
}

// bestFor returns the best model for a language (ISO 639-1) that is fit for the
// use. A model that lists no languages supports all.
func (s *Set) bestFor(language string, use func(*Model) bool) (*Model, bool) {
	var best *Model
	for _, m := range s.All(RoleOptimized) {
		switch {
		case len(m.Languages) > 0 && !slices.Contains(m.Languages, strings.ToLower(language)) || !use(m):
		case best == nil, len(m.Languages) > 0 && (len(best.Languages) == 0 || len(m.Languages) < len(best.Languages)):
			best = m
		}
	}
	return best, best != nil
}

// Available returns the set's tiers and their languages, from which a tier is
// selected. The optimized tier serves the given languages that it has a model
// for. Without given languages, it serves the languages of the specification
// and all further languages that its models list.
func (s *Set) Available(languages ...string) spec.Available {
	var a spec.Available
	standard, ok := s.Role(RoleStandard)
	if ok {
		a.Standard, a.StandardLanguages, a.Translates = true, slices.Clone(standard.Languages), !standard.NoTranslation
	}
	specified := spec.OptimizedLanguages()
	all := len(languages) == 0
	if all {
		languages = specified
		for _, l := range spec.Languages() {
			if !slices.Contains(specified, l.Code) {
				languages = append(languages, l.Code)
			}
		}
	}
	for _, language := range languages {
		if m, found := s.OptimizedFor(language); found && (!all || len(m.Languages) > 0 || slices.Contains(specified, language)) {
			a.Optimized = append(a.Optimized, language)
		}
	}
	return a
}

// Merge returns a set with the models of s, and the fallback's models for every
// role without one in s. Neither set is changed; either may be nil.
//
// The optimized role falls back as a whole.
func (s *Set) Merge(fallback *Set) *Set {
	merged := &Set{}
	if s != nil {
		merged.Name = s.Name
		merged.Models = append(merged.Models, s.Models...)
		merged.Ignored = append(merged.Ignored, s.Ignored...)
	}
	if fallback == nil {
		return merged
	}
	merged.Name = cmp.Or(merged.Name, fallback.Name)
	merged.Ignored = append(merged.Ignored, fallback.Ignored...)
	others := slices.DeleteFunc(slices.Clone(fallback.Models), func(m Model) bool { return len(s.All(m.Role)) > 0 })
	merged.Models = append(merged.Models, others...)
	return merged
}
