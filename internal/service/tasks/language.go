package tasks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph/spec"
)

// LanguageError refuses a task whose language no model of the registered
// workers knows. While no worker has reported its models, nothing is refused.
type LanguageError struct {
	Language  string   // that was asked for
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
