// Package tasks is a task's life: accepted and held in one transaction, queued in one of two lanes, fetched, run by a
// worker process, settled and announced, retried after trouble, deleted.
//
// Truth lives in the database. A claim gives a worker a task under a fencing number (attempt) that rises with every claim;
// whatever a worker writes later is written only if the number is still current. Finishing is one transaction: the
// result's reference, the charge, the ledger entry and the callback change together or not at all.
//
// The tables of tasks and callbacks are the queues, on PostgreSQL and on SQLite. The batch lane waits for the tasks lane,
// accounts take turns, and no receiver of callbacks may keep the others waiting.
package tasks

import (
	"encoding/json"
	"errors"
	"time"
)

// Status is what a task shows.
type Status string

// The states of a task.
const (
	StatusProcessing Status = "processing"
	StatusDone       Status = "done"
	// StatusFailed is final when FinishedAt is set; else the task waits for a retry.
	StatusFailed    Status = "failed"
	StatusAbandoned Status = "abandoned"
)

// Valid reports whether s is one of the four states.
func (s Status) Valid() bool {
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
	AllowTraining   bool
	ErrorMessage    *string
	Options         json.RawMessage // the effective options, byte for byte as they were given to Create
	BatchMode       bool
	CreatedAt       time.Time
	UpdatedAt       time.Time
	FinishedAt      *time.Time // nil until the state is final
}

// Final reports that nothing more will happen to the task.
func (t Task) Final() bool { return t.FinishedAt != nil }

// Errors that callers act upon.
var (
	// ErrNotFound says that there is no such task (HTTP 404).
	ErrNotFound = errors.New("task does not exist")
	// ErrForbidden says that the task is another account's (HTTP 403).
	ErrForbidden = errors.New("task belongs to another account")
	// ErrNotDone says that the task has no result (HTTP 404).
	ErrNotDone = errors.New("task is not done")
	// ErrProcessing says that the task can't be deleted while it is processing (HTTP 409).
	ErrProcessing = errors.New("task is processing")
	// ErrIdempotencyConflict says that the key was used for another request (HTTP 409).
	ErrIdempotencyConflict = errors.New("idempotency key was used for another request")
	// ErrRequest says that a request to Create is not complete.
	ErrRequest = errors.New("task request not accepted")
	// ErrSuperseded says that a worker's claim is over: the task was given to another one, or is gone.
	ErrSuperseded = errors.New("claim is superseded")
	// ErrHung says that the engine did not come back; the worker's process must end.
	ErrHung = errors.New("engine does not return")
)

// permanentError marks an error as the input's fault.
type permanentError struct{ err error }

func (e permanentError) Error() string   { return e.err.Error() }
func (e permanentError) Unwrap() error   { return e.err }
func (e permanentError) Permanent() bool { return true }

// Permanent marks err as one that a retry can't cure (not audio, too long, refused address): the task fails at once. nil
// stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// IsPermanent reports whether err, or one that it wraps, says so by a method Permanent() bool.
func IsPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
