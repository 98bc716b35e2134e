// Package openai reads the forms of OpenAI's audio interface and writes its
// responses, as its clients send and expect them, including errors. All of it
// is an addition to the specification.
package openai

import (
	"cmp"
	"maps"
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
	file     string // name of the model in the folder, "" for the service's choice
}

var yes, no = true, false

// builtin are the names that do not refer to a model of the folder: the
// service's own by tier, and those that OpenAI's clients send by default.
var builtin = []model{
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
	{id: "gpt-realtime-whisper"},
}

// used returns the name of the model that made a result: the name of a model of
// the folder, or of the tier.
func (m model) used(result spec.Result) string {
	return cmp.Or(m.file, "otograph-"+result.Tier.String())
}

// dated matches the end of the name of a dated edition of a model.
var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{4}|latest)$`)

// Names are the names that clients may send as model.
type Names struct {
	// Aliases maps further names, chosen by the operator, to names of models.
	Aliases map[string]string
	// Strict refuses sizes of Whisper that the folder lacks; otherwise they are
	// names of the standard tier.
	Strict bool
	// Sets describes the workers' sets of models. A model can be named if all
	// sets have it, because any worker may claim a task. It is empty while no
	// worker has reported.
	Sets []spec.Available
}

// installed returns the models of the folder that can be named.
func (n Names) installed() []spec.NamedModel {
	if len(n.Sets) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Sets[0].Models), func(m spec.NamedModel) bool {
		return slices.ContainsFunc(n.Sets, func(a spec.Available) bool {
			_, has := a.Only(m.Name)
			return !has
		})
	})
}

// find returns a model by its name: an alias, the service's or OpenAI's name,
// with or without a date, or a model of the folder under the name of its file,
// of its publisher or of other programs.
func (n Names) find(id string) (model, error) {
	name := id
	if other, ok := n.Aliases[id]; ok {
		name = other
	}
	for _, own := range []string{name, dated.ReplaceAllString(name, "")} {
		if i := slices.IndexFunc(builtin, func(m model) bool { return m.id == own }); i >= 0 {
			m := builtin[i]
			m.id = id
			return m, nil
		}
	}
	installed := n.installed()
	for _, same := range []func(spec.NamedModel) bool{
		func(m spec.NamedModel) bool { return m.Name == name },
		func(m spec.NamedModel) bool { return plain(m.Name) == plain(name) },
		func(m spec.NamedModel) bool { return unquantized(plain(m.Name)) == unquantized(plain(name)) },
	} {
		if i := slices.IndexFunc(installed, same); i >= 0 {
			m := model{id: id, file: installed[i].Name, optimize: &no}
			if installed[i].Tier == spec.TierOptimized {
				m.optimize = &yes
			}
			return m, nil
		}
	}
	if !n.Strict && len(n.Sets) > 0 && name == id && whisperSize.MatchString(unquantized(plain(name))) {
		m := model{id: id}
		if !slices.ContainsFunc(n.Sets, func(a spec.Available) bool { return !a.Standard }) {
			m.optimize = &no
		}
		return m, nil
	}
	return model{}, n.Unknown(id)
}

// Live sets the options of a live session that a model's name stands for. The
// error is an *Error for an unknown name.
func (n Names) Live(id string, o *spec.Options, e *spec.Extras) error {
	m, err := n.find(id)
	if err == nil {
		o.Optimize, o.EnableDiarize, e.Model = m.optimize, &m.diarize, m.file
	}
	return err
}

// whisperSize matches the sizes of Whisper that clients send by default,
// without prefixes. A size that the folder lacks names the standard tier.
var whisperSize = regexp.MustCompile(`^(?:distil-)?(?:tiny|base|small|medium|large(?:-v[1-3](?:\.5)?)?)(?:-turbo)?(?:\.en)?$`)

// marks matches the prefixes that publishers and programs put before the name
// of a Whisper model.
var marks = regexp.MustCompile(`^(?:.*/)?(?:(?:faster|ggml|openai|whisper)[-_.])*`)

// plain returns a model's name without prefixes of publishers and programs:
// Systran/faster-whisper-base, ggml-base and whisper-base become base.
func plain(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "distil-whisper-", "distil-")
	name = strings.TrimSuffix(marks.ReplaceAllString(name, ""), "-ct2")
	if name == "turbo" || name == "large-turbo" {
		name = "large-v3-turbo"
	}
	return strings.ReplaceAll(name, "distil-whisper-", "distil-")
}

// precision matches the end of the name of a quantized model.
var precision = regexp.MustCompile(`-(?:q\d(?:_\d)?|f16|f32|int8|fp16|fp32)$`)

func unquantized(name string) string { return precision.ReplaceAllString(name, "") }

func (n Names) all() []string {
	var names []string
	for _, m := range builtin {
		names = append(names, m.id)
	}
	others := slices.Sorted(maps.Keys(n.Aliases))
	for _, m := range n.installed() {
		others = append(others, m.Name)
	}
	for _, name := range others {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Unknown refuses a name.
func (n Names) Unknown(id string) *Error {
	text := "model " + spec.Shorten(id) + " does not exist here; there are " + strings.Join(n.all(), ", ")
	if len(n.Sets) == 0 {
		text += "; no worker has reported its models yet"
	}
	return &Error{Status: http.StatusNotFound, Param: "model", Code: "model_not_found", Message: text}
}

// Model is a model in the form of OpenAI's interface, with its capabilities.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // Unix time
	Owner   string `json:"owned_by"`
	// Languages, WordTimes and Translates are additions to OpenAI's interface.
	Languages  []string `json:"languages"`
	WordTimes  bool     `json:"word_times"`
	Translates bool     `json:"translates"`
}

// record returns a model's record with the capabilities that all workers have.
func (n Names) record(m model, created time.Time) Model {
	out := Model{ID: m.id, Object: "model", Created: created.Unix(), Owner: "otograph", Languages: []string{}}
	optimized := m.optimize != nil && *m.optimize
	out.WordTimes, out.Translates = !optimized, !optimized && len(n.Sets) > 0
	for i, a := range n.Sets {
		if m.file != "" {
			a, _ = a.Only(m.file)
		}
		codes := a.Languages(spec.Options{Optimize: m.optimize})
		if optimized {
			codes = a.Optimized
		}
		if i == 0 {
			out.Languages = append(out.Languages, codes...)
		} else {
			out.Languages = slices.DeleteFunc(out.Languages, func(code string) bool { return !slices.Contains(codes, code) })
		}
		out.Translates = out.Translates && a.Translates
		out.WordTimes = out.WordTimes && a.Standard
	}
	return out
}

// List is the response that lists models.
type List struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// List returns the list of the models, without aliases of missing models;
// created is their date.
func (n Names) List(created time.Time) List {
	list := List{"list", []Model{}}
	for _, id := range n.all() {
		if m, err := n.find(id); err == nil {
			list.Data = append(list.Data, n.record(m, created))
		}
	}
	return list
}

// Find returns a model by its id, or an *Error.
func (n Names) Find(id string, created time.Time) (Model, error) {
	m, err := n.find(id)
	return n.record(m, created), err
}
