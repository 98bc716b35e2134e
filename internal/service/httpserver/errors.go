package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/openai"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/subtitle"
	"github.com/otograph/otograph/voices"
)

// Error codes of the service, sent as error_code in every failed response.
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
	// Param is the wrong field, if there is one; only the endpoints of OpenAI's
	// interface show it.
	Param string
	// RetryAfter, in seconds, is sent as the Retry-After header if positive.
	RetryAfter int
	// openAICode replaces Code on the endpoints of OpenAI's interface.
	openAICode string
	// meant, if set, is the path whose interface gives the error its form, in
	// place of the request's.
	meant string
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

func forbidden(why string) *apiError {
	return &apiError{Status: http.StatusForbidden, Code: codeForbidden, Message: why}
}

func notFound(what string) *apiError {
	return &apiError{Status: http.StatusNotFound, Code: codeNotFound, Message: what}
}

func tooLarge(limit int64) *apiError {
	return &apiError{Status: http.StatusRequestEntityTooLarge, Code: codePayloadTooLarge, Message: fmt.Sprintf("the request body is larger than the %d bytes allowed here", limit)}
}

func unsupported(why string) *apiError {
	return &apiError{Status: http.StatusUnsupportedMediaType, Code: codeInvalidRequest, Message: why}
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

// statusClientGone is logged for requests whose client disconnected; it is
// never sent.
const statusClientGone = 499

// errorResponses maps the service's errors to responses.
var errorResponses = []struct {
	err           error
	status        int
	code, message string
}{
	{tasks.ErrNotDone, http.StatusNotFound, codeNotFound, "the task is not done: there is no result yet"},
	{tasks.ErrModel, http.StatusBadRequest, codeInvalidRequest, "model: there is no such model here; see GET /models"},
	{billing.ErrAfter, http.StatusBadRequest, codeInvalidRequest, "after: must be the id of an entry of this list; it may have been deleted"},
	{accounts.ErrNoVoice, http.StatusNotFound, codeNotFound, "there is no such voice"},
	{accounts.ErrTooManyKeys, http.StatusConflict, codeConflict, fmt.Sprintf("the account already has %d API keys: revoke one first", maxKeys)},
	{webhook.ErrNoHook, http.StatusNotFound, codeNotFound, "the account has no hook: set it with PUT /account/hook"},
	{tasks.ErrNoAudio, http.StatusNotFound, codeNotFound, "the service does not keep this recording"},
	{tasks.ErrNotFound, http.StatusNotFound, codeNotFound, "there is no such task"},
	{tasks.ErrForbidden, http.StatusForbidden, codeForbidden, "the task belongs to another account"},
	{tasks.ErrProcessing, http.StatusConflict, codeConflict, "the task is being processed and cannot be deleted now"},
	{tasks.ErrFinal, http.StatusConflict, codeConflict, "the task has ended"},
	{tasks.ErrTextDelivered, http.StatusConflict, codeConflict, "sentences of the task have been reported: it continues and is charged"},
	{tasks.ErrDeleted, http.StatusConflict, codeConflict, "Idempotency-Key: the task created with it has been deleted; use a new key"},
	{tasks.ErrIdempotencyConflict, http.StatusConflict, codeConflict, "Idempotency-Key: was used for another request within the last 24 hours"},
	{billing.ErrBatchBalance, http.StatusPaymentRequired, codeInsufficientBalance, "balance insufficient for a batch task: resource packs do not pay for batch tasks, so resource_pack_equivalent in GET /account does not count here"},
	{billing.ErrInsufficientBalance, http.StatusPaymentRequired, codeInsufficientBalance, "available balance insufficient: see available_balance in GET /account"},
	{billing.ErrConcurrencyLimit, http.StatusTooManyRequests, codeConcurrencyLimit, "too many concurrent tasks: wait for tasks to finish; see concurrency_limit in GET /account"},
	{accounts.ErrUnauthorized, http.StatusUnauthorized, codeUnauthorized, "missing or invalid credentials: send X-API-Key or Authorization: Bearer"},
	{accounts.ErrSuspended, http.StatusForbidden, codeForbidden, "the account is suspended"},
	{billing.ErrNoAccount, http.StatusUnauthorized, codeUnauthorized, "missing or invalid credentials: send X-API-Key or Authorization: Bearer"},
	{subtitle.ErrNoWordTimes, http.StatusConflict, codeConflict, "format: ctm requires word times, which not every segment of this result has"},
	{subtitle.ErrNoTurns, http.StatusConflict, codeConflict, "format: rttm requires speaker turns, but diarization did not run (enable_diarize)"},
	{db.ErrFull, http.StatusInsufficientStorage, codeInternal, "the service is temporarily out of storage, try again later"},
	{blob.ErrFull, http.StatusInsufficientStorage, codeInternal, "the service is temporarily out of storage, try again later"},
	{context.Canceled, statusClientGone, codeInvalidRequest, "the client has gone away"},
}

// translate turns any error of a handler into the client's response. The text
// of an unknown error is only logged.
func (s *Server) translate(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if form, ok := errors.AsType[*openai.Error](err); ok {
		out := invalidBecause(form, "%s", form.Message)
		out.Param, out.openAICode = form.Param, form.Code
		if form.Status == http.StatusNotFound {
			out.Status, out.Code = form.Status, codeNotFound
		}
		return out
	}
	if read, ok := errors.AsType[*jsonstream.ReadError](err); ok {
		return readError(err, read.Message)
	}
	if wrong, ok := errors.AsType[*jsonstream.Error](err); ok {
		return invalidBecause(err, "%s", wrong)
	}
	if unknown, ok := errors.AsType[*tasks.LanguageError](err); ok {
		return invalidBecause(err, "%v", unknown)
	}
	if errors.Is(err, db.ErrUnavailable) || errors.Is(err, blob.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return unavailable(err)
	}
	if errors.Is(err, webhook.ErrHook) || errors.Is(err, tasks.ErrPeriod) {
		return invalidBecause(err, "%s", err)
	}
	for _, kind := range []error{corrections.ErrChange, voices.ErrVoice} { // their reasons are for the client
		if _, reason, ok := strings.Cut(err.Error(), kind.Error()+": "); ok && errors.Is(err, kind) {
			return invalidBecause(err, "%s", reason)
		}
	}
	for _, k := range errorResponses {
		if errors.Is(err, k.err) {
			return &apiError{Status: k.status, Code: k.code, Message: k.message, cause: err}
		}
	}
	return &apiError{Status: http.StatusInternalServerError, Code: codeInternal, Message: "internal error", cause: err}
}
