package tasks

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/internal/system/blob"
)

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
	return s.Blobs.Create(ctx, ReferenceKey(task, n))
}

// DropReferences deletes the recordings of n known voices of a task that was
// not created. Failures are logged; the clean-up deletes remaining files.
func (s *Service) DropReferences(ctx context.Context, task string, n int) {
	for i := range n {
		s.DropAudio(ctx, ReferenceKey(task, i))
	}
}
