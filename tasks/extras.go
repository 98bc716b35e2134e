package tasks

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/otograph/otograph/spec"
)

// ErrTranslation refuses a translation that no model of the registered workers can
// make. While no worker has reported its models, nothing is refused.
var ErrTranslation = errors.New("no installed model translates")

// Extras are what a task is asked for beside the specification's options.
type Extras struct {
	// Translate asks for the text in English.
	Translate bool `json:"translate,omitempty"`
	// Measures asks to keep what the recognizer measured (spec.Additions).
	Measures bool `json:"measures,omitempty"`
}

// column returns the extras as the database keeps them, nil for none.
func (e Extras) column() (any, error) {
	if reflect.ValueOf(e).IsZero() {
		return nil, nil
	}
	text, err := json.Marshal(e)
	return string(text), err
}

// NewID returns the id of a task to come.
func NewID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}

// canTranslate reports whether some set of models translates, or nothing is known
// about any.
func canTranslate(sets []spec.Available) bool {
	return len(sets) == 0 || slices.ContainsFunc(sets, func(a spec.Available) bool { return a.Translates })
}
