// Package openai reads the forms of OpenAI's audio interface and writes its answers, as
// its clients send and expect them, errors included. The specification knows none of it.
package openai

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/spec"
)

// model is a name that clients may send as model.
type model struct {
	id       string
	optimize *bool // Options.Optimize: the tier, nil for the service's choice
	diarize  bool
}

var yes, no = true, false

// models are the models that /models lists: ours by tier, and the names
// that clients of OpenAI's interface send unless told otherwise.
var models = []model{
	{id: "otograph"},
	{id: "otograph-standard", optimize: &no},
	{id: "otograph-optimized", optimize: &yes},
	{id: "otograph-diarize", diarize: true},
	{id: "whisper-1"},
	{id: "gpt-4o-transcribe"},
	{id: "gpt-4o-mini-transcribe"},
	{id: "gpt-4o-transcribe-diarize", diarize: true},
	{id: "gpt-transcribe"},
	{id: "gpt-live-transcribe"},
}

// ignoresStream reports whether stream changes nothing for the model at OpenAI.
func (m model) ignoresStream() bool { return m.id == "whisper-1" }

// dated is the end of the name of a model's edition.
var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{4}|latest)$`)

// findModel returns a model by its name, or by that of a dated edition.
func findModel(id string) (model, bool) {
	i := slices.IndexFunc(models, func(m model) bool { return m.id == id || m.id == dated.ReplaceAllString(id, "") })
	if i < 0 {
		return model{}, false
	}
	m := models[i]
	m.id = id
	return m, true
}

func noSuchModel(id string) *Error {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.id
	}
	return &Error{
		Status: http.StatusNotFound, Param: "model", Code: "model_not_found",
		Message: "model " + spec.Shorten(id) + " does not exist here; there are " + strings.Join(names, ", "),
	}
}

// Model is a model as OpenAI's interface shows it.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // Unix time
	Owner   string `json:"owned_by"`
}

func record(m model, created time.Time) Model {
	return Model{ID: m.id, Object: "model", Created: created.Unix(), Owner: "otograph"}
}

// List is the answer that lists models.
type List struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// Models returns the list of the models, which exist since created.
func Models(created time.Time) List {
	list := List{"list", make([]Model, len(models))}
	for i, m := range models {
		list.Data[i] = record(m, created)
	}
	return list
}

// FindModel returns a model by its id, or an *Error.
func FindModel(id string, created time.Time) (Model, error) {
	m, ok := findModel(id)
	if !ok {
		return Model{}, noSuchModel(id)
	}
	return record(m, created), nil
}
