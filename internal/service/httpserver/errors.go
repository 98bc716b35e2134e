package httpserver

import (
	"fmt"
	"net/http"
)

// Error codes of the service, sent as error_code next to error in every failed
// response.
const (
	codeInvalidRequest      = "invalid_request"
	codeUnauthorized        = "unauthorized"
	codeInsufficientBalance = "insufficient_balance"
	codeForbidden           = "forbidden"
	codeNotFound            = "not_found"
	codeConflict            = "conflict"
	codeConcurrencyLimit    = "concurrency_limit_exceeded"
	codeRateLimited         = "rate_limited"
	codePayloadTooLarge     = "payload_too_large"
	codeInternal            = "internal"
	codeUnavailable         = "unavailable"
)

// apiError is the response to a request that failed.
type apiError struct {
	Status  int    // HTTP status
	Code    string // one of the codes above
	Message string // the reason, in words
	// Param is the field at fault, if the client sent one; only the endpoints
	// of OpenAI's interface show it.
	Param string
	// RetryAfter, in seconds, is sent as the Retry-After header if positive.
	RetryAfter int
	// openAICode replaces Code on the endpoints of OpenAI's interface.
	openAICode string
	// cause is logged, never sent.
	cause error
}

// Error implements error.
func (e *apiError) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *apiError) Unwrap() error { return e.cause }

// maxMessage limits an error's text, in characters, because parts of it may
// come from a client.
const maxMessage = 500

func invalid(format string, args ...any) *apiError {
	message := fmt.Sprintf(format, args...)
	if r := []rune(message); len(r) > maxMessage {
		message = string(r[:maxMessage]) + "…"
	}
	return &apiError{Status: http.StatusBadRequest, Code: codeInvalidRequest, Message: message}
}

// invalidBecause is invalid with the error that caused it, for the log.
func invalidBecause(cause error, format string, args ...any) *apiError {
	e := invalid(format, args...)
	e.cause = cause
	return e
}

func unauthorized() *apiError {
	return &apiError{Status: http.StatusUnauthorized, Code: codeUnauthorized, Message: "missing or invalid credentials: send X-API-Key or Authorization: Bearer"}
}

func forbidden(why string) *apiError {
	return &apiError{Status: http.StatusForbidden, Code: codeForbidden, Message: why}
}

func notFound(what string) *apiError {
	return &apiError{Status: http.StatusNotFound, Code: codeNotFound, Message: what}
}

func tooLarge(limit int64) *apiError {
	return &apiError{Status: http.StatusRequestEntityTooLarge, Code: codePayloadTooLarge, Message: fmt.Sprintf("the request body is larger than the %d bytes allowed here", limit)}
}

func unsupportedType(want string) *apiError {
	return &apiError{Status: http.StatusUnsupportedMediaType, Code: codeInvalidRequest, Message: "Content-Type must be " + want}
}

func rateLimited(seconds int, message string) *apiError {
	return &apiError{Status: http.StatusTooManyRequests, Code: codeRateLimited, Message: message, RetryAfter: seconds}
}

// retryUnavailable is the Retry-After, in seconds, of a response to a store's
// failure. Stores that restart or fail over need some seconds; earlier retries
// only add to their load.
const retryUnavailable = 5

func unavailable(cause error) *apiError {
	return &apiError{Status: http.StatusServiceUnavailable, Code: codeUnavailable, Message: "the service is temporarily unavailable, try again", RetryAfter: retryUnavailable, cause: cause}
}
