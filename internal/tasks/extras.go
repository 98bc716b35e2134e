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

// ErrTranslation refuses a translation if some registered worker cannot
// translate, because any worker may claim the task. While no worker has
// reported its models, nothing is refused.
var ErrTranslation = errors.New("not all installed models can translate")

// ErrModel refuses a task if some registered worker lacks the model that it
// names.
var ErrModel = errors.New("not all workers have the model")

// Extras are the options of a task that are not in the specification.
type Extras struct {
	// Translate requests the text in English.
	Translate bool `json:"translate,omitempty"`
	// Measures requests the recognizer's measures (spec.Measures).
	Measures bool `json:"measures,omitempty"`
	// Voices holds the names of the known speakers. NewReference stores their
	// recordings in the same order.
	Voices []string `json:"voices,omitempty"`
	// Languages lists the codes that detection chooses from; empty means all.
	Languages []string `json:"languages,omitempty"`
	// Model is the recognizer's name, "" for the engine's choice. It does not
	// change after the task's creation.
	Model string `json:"model,omitempty"`
}

// column returns the extras in their stored form, nil if there are none.
func (e Extras) column() (any, error) {
	if reflect.ValueOf(e).IsZero() {
		return nil, nil
	}
	text, err := json.Marshal(e)
	return string(text), err
}

// readExtras reads the stored form of a task's extras.
func readExtras(column sql.NullString) (e Extras, err error) {
	if column.Valid {
		err = json.Unmarshal([]byte(column.String), &e)
	}
	return e, err
}

// NewID returns an id for a new task.
func NewID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}

// ReferenceKey returns the key of the recording of a task's n-th known voice.
// The recording is deleted when the task ends, like the checkpoints.
func ReferenceKey(task string, n int) string {
	return fmt.Sprintf("%svoices/%d", CheckpointPrefix(task), n)
}

// ReferencesField is the form field with the recordings of known speakers.
const ReferencesField = "known_speaker_references[]"

// ReferenceRefusal returns the error message of a task whose n-th recording of
// a known speaker, counted from 0, is unusable. It reads like the response to
// an invalid form field.
func ReferenceRefusal(n int, why string) string {
	return fmt.Sprintf("%s: number %d: %s", ReferencesField, n+1, why)
}

// NewReference begins the file of the n-th known voice of a task to be created
// with the given id. The caller commits or aborts it.
func (s *Service) NewReference(ctx context.Context, task string, n int) (*blob.Writer, error) {
	return s.blobs.Create(ctx, ReferenceKey(task, n))
}

// DropReferences deletes the recordings of n known voices of a task that was
// not created. Failures are logged; the clean-up deletes remaining files.
func (s *Service) DropReferences(ctx context.Context, task string, n int) {
	for i := range n {
		s.DropAudio(ctx, ReferenceKey(task, i))
	}
}

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
	sets, err := s.queue.Available(ctx, s.db.Read())
	return sets, s.wrap("models", err)
}

// canTranslate reports whether every set of models translates. It is true if no
// set is known.
func canTranslate(sets []spec.Available) bool {
	return !slices.ContainsFunc(sets, func(a spec.Available) bool { return !a.Translates })
}
