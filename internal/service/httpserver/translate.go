package httpserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/openai"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/voicestore"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// statusClientGone is logged for requests whose client disconnected; it is
// never sent.
const statusClientGone = 499

// known maps the service's errors to responses.
var known = []struct {
	err     error
	status  int
	code    string
	message string
}{
	{tasks.ErrNotDone, http.StatusNotFound, codeNotFound, "the task is not done: there is no result yet"},
	{voicestore.ErrNotFound, http.StatusNotFound, codeNotFound, "there is no such voice"},
	{tasks.ErrNoAudio, http.StatusNotFound, codeNotFound, "the service does not keep this recording"},
	{tasks.ErrVersion, http.StatusPreconditionFailed, codeConflict, "If-Match: the annotations have changed since; fetch them again"},
	{tasks.ErrNotFound, http.StatusNotFound, codeNotFound, "there is no such task"},
	{tasks.ErrForbidden, http.StatusForbidden, codeForbidden, "the task belongs to another account"},
	{tasks.ErrProcessing, http.StatusConflict, codeConflict, "the task is being processed and cannot be deleted now"},
	{tasks.ErrFinal, http.StatusConflict, codeConflict, "the task has ended"},
	{tasks.ErrTold, http.StatusConflict, codeConflict, "sentences of the task have been reported: it continues and is charged"},
	{tasks.ErrDeleted, http.StatusConflict, codeConflict, "Idempotency-Key: the task created with it has been deleted; use a new key"},
	{tasks.ErrIdempotencyConflict, http.StatusConflict, codeConflict, "Idempotency-Key: was used for another request within the last 24 hours"},
	{billing.ErrBatchBalance, http.StatusPaymentRequired, codeInsufficientBalance, "balance insufficient for a batch task: resource packs do not pay for batch tasks, so resource_pack_equivalent in GET /account does not count here"},
	{billing.ErrInsufficientBalance, http.StatusPaymentRequired, codeInsufficientBalance, "available balance insufficient: see available_balance in GET /account"},
	{billing.ErrConcurrencyLimit, http.StatusTooManyRequests, codeConcurrencyLimit, "too many concurrent tasks: wait for tasks to finish; see concurrency_limit in GET /account"},
	{accounts.ErrUnauthorized, http.StatusUnauthorized, codeUnauthorized, "missing or invalid credentials: send X-API-Key or Authorization: Bearer"},
	{billing.ErrNoAccount, http.StatusUnauthorized, codeUnauthorized, "missing or invalid credentials: send X-API-Key or Authorization: Bearer"},
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
		return refusal(form)
	}
	if form, ok := errors.AsType[*openai.ReadError](err); ok {
		return readError(err, form.Error())
	}
	if unknown, ok := errors.AsType[*tasks.LanguageError](err); ok {
		return invalidBecause(err, "%v", unknown)
	}
	if errors.Is(err, db.ErrUnavailable) || errors.Is(err, blob.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return unavailable(err)
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return &apiError{Status: k.status, Code: k.code, Message: k.message, cause: err}
		}
	}
	return &apiError{Status: http.StatusInternalServerError, Code: codeInternal, Message: "internal error", cause: err}
}
