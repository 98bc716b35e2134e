// Package tasks is the life of a task: accepted with its hold in one
// transaction, claimed by a worker, settled and announced, retried after
// trouble, read, deleted.
//
// The database holds the truth. Package tasks/queue decides which task runs next
// and fences what workers write, package tasks/webhook delivers callbacks, and
// package tasks/worker, above this one, does the work. Finishing is one
// transaction: the result's reference, the charge, the ledger entry and the
// callback change together or not at all.
package tasks

import (
	"errors"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/spec"
)

// Status is the state of a task that customers see.
type Status string

// The states of a task.
const (
	StatusProcessing Status = "processing"
	StatusDone       Status = "done"
	// StatusFailed is final when FinishedAt is set; else the task waits for a retry.
	StatusFailed    Status = "failed"
	StatusAbandoned Status = "abandoned"
)

// valid reports whether s is one of the four states.
func (s Status) valid() bool {
	return s == StatusProcessing || s == StatusDone || s == StatusFailed || s == StatusAbandoned
}

// Where the audio of a task came from.
const (
	SourceURL    = "url"
	SourceBase64 = "base64"
)

// Task is one task as its owner sees it.
type Task struct {
	ID              string // UUID
	AccountID       string
	Status          Status
	AudioFilename   string
	AudioSourceType string  // SourceURL or SourceBase64
	AudioSize       *int64  // bytes; nil in a URL task that is not fetched yet
	AudioMD5        *string // 32 hexadecimal digits; nil like AudioSize
	AudioDuration   *float64
	Language        string // of the speech, once the task is done; "" if nothing was transcribed
	Speakers        *int   // their number, once the task is done; nil if none were told apart
	AllowTraining   bool
	ErrorMessage    *string
	Warnings        []spec.Warning `json:",omitzero"` // about the recording, once it is done
	Options         spec.EffectiveOptions
	Extras          Extras `json:",omitzero"` // requests in addition to them
	BatchMode       bool
	CreatedAt       time.Time
	UpdatedAt       time.Time
	Charged         *billing.Money // what List knows that was charged; else nil
	FinishedAt      *time.Time     // nil until the state is final
}

// TimeFormat is how times are written to customers: RFC 3339 in UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// Final reports that nothing more will happen to the task.
func (t Task) Final() bool { return t.FinishedAt != nil }

// Errors that callers act upon.
var (
	// ErrNotFound is returned when the task does not exist (HTTP 404).
	ErrNotFound = errors.New("task does not exist")
	// ErrForbidden is returned when the task belongs to another account (HTTP
	// 403).
	ErrForbidden = errors.New("task belongs to another account")
	// ErrNoAudio is returned when the service does not have the recording (HTTP
	// 404).
	ErrNoAudio = errors.New("the recording is not kept")
	// ErrNotDone is returned when the task has no result (HTTP 404).
	ErrNotDone = errors.New("task is not done")
	// ErrProcessing is returned when the task can't be deleted because it is
	// being processed (HTTP 409).
	ErrProcessing = errors.New("task is processing")
	// ErrFinal is returned when the task has already ended.
	ErrFinal = errors.New("task has ended")
	// ErrIdempotencyConflict is returned when the key was used for another
	// request (HTTP 409).
	ErrIdempotencyConflict = errors.New("idempotency key was used for another request")
	// ErrDeleted is returned when the task of an idempotency key was deleted
	// (HTTP 409).
	ErrDeleted = errors.New("the task has been deleted")
	// ErrRequest is returned for an incomplete request to Create.
	ErrRequest = errors.New("task request not accepted")
)
