package jsonstream

import (
	"errors"
	"fmt"
)

// Error describes a problem of an object. Its text names the field and is safe
// to show to the client.
type Error struct {
	message string
	cause   error
}

// Error implements error.
func (e *Error) Error() string { return e.message }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.cause }

func invalid(format string, args ...any) *Error {
	return &Error{message: fmt.Sprintf(format, args...)}
}

// ReadError reports that the stream failed before the end of the object.
type ReadError struct{ cause error }

// Error implements error.
func (e *ReadError) Error() string { return "the body ends in the middle of the JSON object" }

// Unwrap returns the stream's error, or io.EOF if it is too short.
func (e *ReadError) Unwrap() error { return e.cause }

// errTooLong is returned for a string longer than its limit.
var errTooLong = errors.New("the string is too long")
