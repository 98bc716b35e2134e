package safehttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// The texts of requests that failed after leaving the client. There are only
// three, because the system's message about a connection contains this
// machine's address, and the differences (refused, no route, timeout) would
// show a stranger which ports are open in a network that the operator allowed.
const (
	failedReach  = "the host could not be reached"
	failedAnswer = "the host did not return a valid HTTP response"
	failedBody   = "the connection was lost before the whole response was read"
)

// failure has one of the texts above. Its cause is for the log: see Class.
type failure struct {
	text  string
	cause error
}

// Error implements error.
func (e *failure) Error() string { return e.text }

// Unwrap returns the cause.
func (e *failure) Unwrap() error { return e.cause }

// Class returns the kind of an error of a request, for the operator's log only:
// the system's error, or else the type of the innermost error. Unlike the error
// itself it contains no name or address, which may be a customer's.
func Class(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return fmt.Sprintf("%T", err)
}

// explain replaces an error with a failure, except refusals, resolver errors
// and the end of the caller's context, which reveal no more than they should.
func explain(err error, text string) error {
	var f *failure
	var r *refusal
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &r):
		return r
	case errors.Is(err, ErrResolver), errors.Is(err, context.Canceled):
		return err
	}
	return &failure{text, err}
}

// answerBody is the body of a response, with explained errors.
type answerBody struct{ io.ReadCloser }

// Read implements io.Reader.
func (b answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain(err, failedBody)
	}
	return n, err
}
