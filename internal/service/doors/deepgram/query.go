// Package deepgram speaks Deepgram's interface for listening, as its clients
// send and expect it, including errors. All of it is an addition to the
// specification.
package deepgram

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// Query holds the parameters of a request.
type Query struct {
	Options   spec.Options
	Effective spec.EffectiveOptions // Options with their defaults
	Extras    spec.Extras

	values     url.Values
	detected   bool // the response names the detected language
	utterances bool
	ignored    []string // parameters that have no effect
}

// unserved are parameters of features that are not served. Parameters in
// ineffective change only how a text is written.
var (
	unserved    = []string{"callback", "custom_intent", "custom_topic", "detect_entities", "intents", "multichannel", "paragraphs", "redact", "replace", "search", "sentiment", "summarize", "topics"}
	ineffective = []string{"dictation", "filler_words", "measurements", "numerals", "profanity_filter"}
)

// theirs matches the names of Deepgram's models, for which the service chooses
// its own model.
var theirs = regexp.MustCompile(`^((nova|enhanced|base|flux|whisper)(-.*)?|general|meeting|phonecall|finance|conversationalai|voicemail|video|custom|otograph)?$`)

// ReadQuery reads a request's parameters. Unknown ones are ignored, as by
// Deepgram. An error is a *spec.OptionError.
func ReadQuery(values url.Values) (*Query, error) {
	q := &Query{values: values, utterances: on(values, "utterances")}
	if i := slices.IndexFunc(unserved, func(name string) bool { return on(values, name) }); i >= 0 {
		return nil, &spec.OptionError{Field: unserved[i], Reason: "is not served here; leave it out"}
	}
	q.ignored = slices.DeleteFunc(slices.Clone(ineffective), func(name string) bool { return !on(values, name) })
	no, diarize, level := false, on(values, "diarize") || on(values, "diarize_model"), spec.TimestampWord
	q.Options.EnableDiarize, q.Options.EnableAudioEvents, q.Options.TimestampLevel = &diarize, &no, &level
	q.Options.Hotwords = terms(values["keyterm"])
	for _, word := range terms(values["keywords"]) {
		word, _, _ = strings.Cut(word, ":") // without its weight
		q.Options.Hotwords = append(q.Options.Hotwords, word)
	}
	switch model := values.Get("model"); {
	case model == "otograph-standard" || model == "otograph-optimized":
		q.Options.Optimize = new(model == "otograph-optimized")
	case !theirs.MatchString(model):
		q.Extras.Model = model
	}
	q.chooseLanguage()
	var err error
	q.Effective, err = doors.Check(q.Options, names)
	return q, err
}

// names are the parameters that set options.
var names = map[string]string{"hotwords": "keyterm", "asr_language": "language"}

// on reports whether a parameter has a value that switches something on.
func on(values url.Values, name string) bool {
	return slices.ContainsFunc(values[name], func(v string) bool { return v != "" && !strings.EqualFold(v, "false") && v != "0" })
}

func terms(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(term string) bool { return strings.TrimSpace(term) == "" })
}

// chooseLanguage sets the language to the parameter's, or to detection among
// all languages or the values of detect_language and language_hint.
func (q *Query) chooseLanguage() {
	language := q.values.Get("language")
	q.detected = language == "multi" || on(q.values, "detect_language")
	if language != "" && !q.detected {
		q.Options.ASRLanguage = &language
		return
	}
	for _, hint := range slices.Concat(q.values["detect_language"], q.values["language_hint"]) {
		if code, ok := spec.NormalizeLanguage(hint); ok && !slices.Contains(q.Extras.Languages, code) { // not "true"
			q.Extras.Languages = append(q.Extras.Languages, code)
		}
	}
}
