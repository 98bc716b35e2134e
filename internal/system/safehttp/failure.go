package safehttp

import (
	"context"
	"errors"
	"io"
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

// failure has one of the texts above. Its cause is for the log: see Cause.
type failure struct {
	text  string
	cause error
}

// Error implements error.
func (e *failure) Error() string { return e.text }

// Unwrap returns the cause.
func (e *failure) Unwrap() error { return e.cause }

// Cause returns the system's message about a failed request, for the operator
// only. It returns errors of other packages unchanged.
func Cause(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.cause
	}
	return err
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
