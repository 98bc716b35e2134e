// Package tasks implements the life of a task: accepted with its hold in one
// transaction, claimed, charged and announced, retried, read, deleted.
//
// The database is the only record of a task's state. Package queue decides which
// task runs next and fences the writes of workers, package webhook delivers
// callbacks, and package worker, above this one, runs the tasks. Finishing is one transaction: the result's reference, the
// charge, the ledger entry and the callback change together or not at all.
package tasks

import (
	"errors"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Status is the state of a task that customers see.
type Status string

// The states of a task.
const (
	StatusProcessing Status = "processing"
	StatusDone       Status = "done"
	// StatusFailed is final if FinishedAt is set; else the task is retried.
	StatusFailed    Status = "failed"
	StatusAbandoned Status = "abandoned"
)

// Sources of a task's audio.
const (
	SourceURL    = "url"
	SourceBase64 = "base64"
)

// Task is one task as its owner sees it.
type Task struct {
	ID                   string // UUID
	AccountID            string
	Status               Status
	AudioFilename        string
	AudioSourceType      string   // SourceURL or SourceBase64
	AudioSize            *int64   // bytes; nil for a URL task that is not fetched yet
	AudioMD5             *string  // 32 hexadecimal digits; nil if AudioSize is nil
	AudioDuration        *float64 // length in seconds with gaps, as in the result; nil until the task is done
	Language             string   // of the speech, once the task is done; "" if nothing was transcribed
	Speakers             *int     // number of speakers, once the task is done; nil without diarization
	AllowTraining        bool
	ErrorMessage         *string
	Warnings             []spec.Warning `json:",omitzero"` // about the recording, once the task is done
	Options              spec.EffectiveOptions
	Extras               Extras `json:",omitzero"` // options outside the specification
	BatchMode            bool
	CreatedAt, UpdatedAt time.Time
	Charged              *billing.Money // the charged amount, set by List only; nil if unknown
	FinishedAt           *time.Time     // nil until the state is final

	number int64 // the task's place among the account's ended tasks, set by Finished only
}

// Final reports whether the task has ended for good.
func (t Task) Final() bool { return t.FinishedAt != nil }

// Errors that callers check for.
var (
	// ErrNotFound is returned when the task does not exist (HTTP 404).
	ErrNotFound = errors.New("task does not exist")
	// ErrForbidden is returned for a task of another account (HTTP 403).
	ErrForbidden = errors.New("task belongs to another account")
	// ErrNoAudio is returned when the recording does not exist (HTTP 404).
	ErrNoAudio = errors.New("the recording is not kept")
	// ErrNotDone is returned when the task has no result (HTTP 404).
	ErrNotDone = errors.New("task is not done")
	// ErrProcessing is returned when the task can't be deleted because it is
	// being processed (HTTP 409).
	ErrProcessing = errors.New("task is processing")
	// ErrFinal is returned when the task has already ended.
	ErrFinal = errors.New("task has ended")
	// ErrIdempotencyConflict is returned for a key of another request (409).
	ErrIdempotencyConflict = errors.New("idempotency key was used for another request")
	// ErrDeleted is returned for an idempotency key of a deleted task (409).
	ErrDeleted = errors.New("the task has been deleted")
	// ErrRequest is returned for an incomplete request to Create.
	ErrRequest = errors.New("task request not accepted")
)

// NewID returns an id for a new task.
func NewID() string { return db.NewID() }

// Extras are the options of a task that are not in the specification.
type Extras struct {
	spec.Extras
	// Voices holds the names of the known speakers. NewReference stores their
	// recordings in the same order.
	Voices []string `json:"voices,omitempty"`
	// Live marks the task of a live session.
	Live bool `json:"live,omitempty"`
}
