package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/otograph/otograph/spec"
)

// The endpoints below audio/ and models are those of OpenAI's audio interface,
// as its clients call them, errors included. They are additions: the
// specification knows none of them.

// openAIModel is a name that clients may send as model.
type openAIModel struct {
	id       string
	optimize *bool // Options.Optimize: the tier, nil for the service's choice
	diarize  bool
}

var yes, no = true, false

// openAIModels are the models that /models lists: ours by tier, and the names
// that clients of OpenAI's interface send unless told otherwise.
var openAIModels = []openAIModel{
	{id: "otograph"},
	{id: "otograph-standard", optimize: &no},
	{id: "otograph-optimized", optimize: &yes},
	{id: "otograph-diarize", diarize: true},
	{id: "whisper-1"},
	{id: "gpt-4o-transcribe"},
	{id: "gpt-4o-mini-transcribe"},
	{id: "gpt-4o-transcribe-diarize", diarize: true},
}

func findOpenAIModel(id string) (openAIModel, bool) {
	i := slices.IndexFunc(openAIModels, func(m openAIModel) bool { return m.id == id })
	if i < 0 {
		return openAIModel{}, false
	}
	return openAIModels[i], true
}

func noSuchModel(id string) *Error {
	names := make([]string, len(openAIModels))
	for i, m := range openAIModels {
		names[i] = m.id
	}
	e := notFound("model " + spec.Shorten(id) + " does not exist here; there are " + strings.Join(names, ", "))
	e.Param, e.openAICode = "model", "model_not_found"
	return e
}

// modelRecord is a model as OpenAI's interface shows it.
type modelRecord struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // Unix time
	Owner   string `json:"owned_by"`
}

func (s *Server) modelRecord(m openAIModel) modelRecord {
	return modelRecord{ID: m.id, Object: "model", Created: s.started.Unix(), Owner: "otograph"}
}

// listModels is GET /models.
func (s *Server) listModels(w http.ResponseWriter, _ *request) error {
	records := make([]modelRecord, len(openAIModels))
	for i, m := range openAIModels {
		records[i] = s.modelRecord(m)
	}
	return writeJSON(w, http.StatusOK, struct {
		Object string        `json:"object"`
		Data   []modelRecord `json:"data"`
	}{"list", records})
}

// getModel is GET /models/{model}.
func (s *Server) getModel(w http.ResponseWriter, r *request) error {
	m, ok := findOpenAIModel(r.PathValue("model"))
	if !ok {
		return noSuchModel(r.PathValue("model"))
	}
	return writeJSON(w, http.StatusOK, s.modelRecord(m))
}

// openAIPath reports whether a path belongs to OpenAI's interface, whose errors
// have a different shape.
func (s *Server) openAIPath(path string) bool {
	rest, ok := strings.CutPrefix(path, s.cfg.BasePath+"/")
	first, _, _ := strings.Cut(rest, "/")
	return ok && slices.Contains([]string{"audio", "models", "realtime"}, first)
}

// openAIError is the error object of OpenAI's interface.
type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// openAITypes are the error types of OpenAI's interface by HTTP status; others
// from 400 are invalid_request_error, from 500 server_error.
var openAITypes = map[int]string{
	http.StatusUnauthorized:    "authentication_error",
	http.StatusPaymentRequired: "insufficient_quota",
	http.StatusForbidden:       "permission_error",
	http.StatusTooManyRequests: "rate_limit_error",
}

// openAICodes are the codes of OpenAI's interface that clients look for, by ours.
var openAICodes = map[string]string{
	codeUnauthorized:        "invalid_api_key",
	codeInsufficientBalance: "insufficient_quota",
	codeRateLimited:         "rate_limit_exceeded",
	codePayloadTooLarge:     "request_too_large",
}

func (e *Error) openAI() openAIError {
	out := openAIError{Message: e.Message, Type: openAITypes[e.Status]}
	switch {
	case out.Type != "":
	case e.Status >= http.StatusInternalServerError:
		out.Type = "server_error"
	default:
		out.Type = "invalid_request_error"
	}
	if e.Param != "" {
		out.Param = &e.Param
	}
	code := cmp.Or(e.openAICode, openAICodes[e.Code], e.Code)
	out.Code = &code
	return out
}
