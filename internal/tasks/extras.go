package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/spec"
)

// ErrTranslation refuses a translation that not all registered workers can make, as
// any of them may claim it. While no worker has reported its models, nothing is
// refused.
var ErrTranslation = errors.New("not all installed models can translate")

// ErrModel refuses a task that names a model which not all registered workers have.
var ErrModel = errors.New("not all workers have the model")

// Extras are what a task is asked for beside the specification's options.
type Extras struct {
	// Translate asks for the text in English.
	Translate bool `json:"translate,omitempty"`
	// Measures asks to keep what the recognizer measured (spec.Measures).
	Measures bool `json:"measures,omitempty"`
	// Voices are the names of the known speakers, whose recordings NewReference
	// stores in the same order.
	Voices []string `json:"voices,omitempty"`
	// Languages are the codes from which detection chooses; none are all.
	Languages []string `json:"languages,omitempty"`
	// Model is the recognizer's name, "" for the engine's choice. A task keeps the one
	// that it was accepted with.
	Model string `json:"model,omitempty"`
}

// column returns the extras as the database keeps them, nil for none.
func (e Extras) column() (any, error) {
	if reflect.ValueOf(e).IsZero() {
		return nil, nil
	}
	text, err := json.Marshal(e)
	return string(text), err
}

// readExtras reads the extras of a task as the database keeps them.
func readExtras(column sql.NullString) (e Extras, err error) {
	if column.Valid {
		err = json.Unmarshal([]byte(column.String), &e)
	}
	return e, err
}

// NewID returns the id of a task to come.
func NewID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}

// ReferenceKey returns where the recording of a task's n-th known voice is. It goes
// when the task ends, like the checkpoints.
func ReferenceKey(task string, n int) string {
	return fmt.Sprintf("%svoices/%d", CheckpointPrefix(task), n)
}

// ReferencesField is the field of a form with the recordings of known speakers.
const ReferencesField = "known_speaker_references[]"

// ReferenceRefusal returns the error message of a task whose n-th recording of a known
// speaker, counted from 0, can't be used. The form is answered as one with a bad field.
func ReferenceRefusal(n int, why string) string {
	return fmt.Sprintf("%s: number %d: %s", ReferencesField, n+1, why)
}

// NewReference begins the file of the n-th known voice of a task that is about to
// be created under the id. Commit it, or Abort it.
func (s *Service) NewReference(ctx context.Context, task string, n int) (*blob.Writer, error) {
	return s.blobs.Create(ctx, ReferenceKey(task, n))
}

// DropReferences deletes the recordings of n known voices of a task that did not come
// into being. Trouble is logged: the clean-up finds what stays behind.
func (s *Service) DropReferences(ctx context.Context, task string, n int) {
	for i := range n {
		s.DropAudio(ctx, ReferenceKey(task, i))
	}
}

// naming returns what the sets of models can transcribe with the model that a task names,
// "" for none.
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

// Available returns what the sets of models of the registered workers can transcribe,
// none while no worker has reported.
func (s *Service) Available(ctx context.Context) ([]spec.Available, error) {
	sets, err := s.queue.Available(ctx, s.db.Read())
	return sets, s.wrap("models", err)
}

// canTranslate reports whether every set of models translates, or nothing is known
// about any.
func canTranslate(sets []spec.Available) bool {
	return !slices.ContainsFunc(sets, func(a spec.Available) bool { return !a.Translates })
}
