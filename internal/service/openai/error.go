package openai

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

// Error refuses a request.
type Error struct {
	Status  int    // HTTP status
	Message string // the reason, in words
	Param   string // the field of the form at fault
	Code    string // "" means the service's code
	cause   error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Unreadable is the message of a *jsonstream.ReadError for a form that can't be
// read to its end.
const Unreadable = "the form cannot be read: it is truncated or not multipart/form-data"

// badField returns a refusal that names a field of the form, in front of the
// message and as the error's param.
func badField(name, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("%s: %s", spec.Shorten(name), fmt.Sprintf(format, args...)), Param: spec.Shorten(name)}
}

// Untranscribed refuses the file of a form whose task failed for a reason.
func Untranscribed(reason string) *Error {
	e := badField("file", "the audio could not be transcribed: %s", reason)
	switch {
	case strings.HasPrefix(reason, tasks.ReferencesField+":"):
		e.Message, e.Param = reason, tasks.ReferencesField
	case strings.Contains(reason, ": language"): // which the recognizer does not know
		e.Message, e.Param = "language: "+reason, "language"
	}
	e.Code = "invalid_value"
	return e
}

// NoTranslation refuses a translation that the installed models can't make.
func NoTranslation() *Error {
	return badField("model", "not all installed models can translate: multilingual Whisper models can, except turbo and distilled ones")
}

// NoLanguage refuses a form's languages if no installed model supports one.
func (f *Form) NoLanguage(e *tasks.LanguageError) *Error {
	name := "language"
	if len(f.Languages) > 0 {
		name = "languages[]"
	}
	return badField(name, "no installed model supports %s; installed: %s", spec.Shorten(e.Language), strings.Join(e.Installed, ", "))
}

// errorObject is the error object of OpenAI's interface.
type errorObject struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// errorTypes maps HTTP statuses to the error types of OpenAI's interface; other
// statuses from 400 are invalid_request_error, from 500 server_error.
var errorTypes = map[int]string{
	http.StatusUnauthorized:    "authentication_error",
	http.StatusPaymentRequired: "insufficient_quota",
	http.StatusForbidden:       "permission_error",
	http.StatusTooManyRequests: "rate_limit_error",
}

// errorCodes maps codes to the codes of OpenAI's interface that clients check.
var errorCodes = map[string]string{
	"unauthorized":         "invalid_api_key",
	"insufficient_balance": "insufficient_quota",
	"rate_limited":         "rate_limit_exceeded",
	"payload_too_large":    "request_too_large",
}

// ErrorBody is the response to a failed request, and a stream's last event.
type ErrorBody struct {
	Error errorObject `json:"error"`
}

// NewErrorBody returns the response to a request that failed with a status and
// the service's code. replaced is shown instead of the usual code, unless "".
func NewErrorBody(status int, code, replaced, param, message string) ErrorBody {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	out := errorObject{Message: message, Type: cmp.Or(errorTypes[status], kind)}
	if param != "" {
		out.Param = &param
	}
	code = cmp.Or(replaced, errorCodes[code], code)
	out.Code = &code
	return ErrorBody{out}
}
