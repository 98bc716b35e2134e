package openai

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/spec"
)

// Formats of the response to POST /audio/transcriptions.
const (
	formatJSON    = "json"
	formatVerbose = "verbose_json"
	formatText    = "text"
	formatSRT     = "srt"
	formatVTT     = "vtt"
	// formatDiarized has segments with their speakers.
	formatDiarized = "diarized_json"
)

var formats = []string{formatJSON, formatVerbose, formatDiarized, formatText, formatSRT, formatVTT}

const (
	maxFormField  = 64 << 10 // bytes of a field other than the file
	maxPrompt     = 1000     // characters at the end of a prompt that are used
	maxFormFields = 320      // each keyword has its own field
	maxFilename   = 255      // characters
)

// Form holds the parameters of OpenAI's transcriptions and translations.
type Form struct {
	Filename string
	Options  spec.Options
	// Effective are the Options with their defaults.
	Effective spec.EffectiveOptions
	Stream    bool // the answer is events
	// CancelOnDisconnect ends the task when the client goes away; an addition to
	// OpenAI's interface.
	CancelOnDisconnect bool
	// Translate requests English text, as POST /audio/translations does.
	Translate bool
	Speakers  []string // names of known speakers
	Languages []string // codes that detection chooses from; empty means all

	names    Names
	model    model
	format   string
	words    bool // word times
	segments bool // segments in verbose_json
	logprobs bool // the words' probabilities
}

// ReadForm reads a form whose model is one of the names. file receives the
// audio as it arrives, reference the recording of each known speaker; if they
// return an error of the service, ReadForm returns it unchanged. All other
// errors are an *Error or a *jsonstream.ReadError.
func ReadForm(mr *multipart.Reader, names Names, translate bool, file func(filename string, from io.Reader) error, reference func(from io.Reader) error) (*Form, error) {
	f := &Form{names: names, format: formatJSON, Translate: translate}
	r := formReading{form: f, file: file, reference: reference, entries: map[string]int{}, wrong: map[string]error{}}
	for n := 0; ; n++ {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &jsonstream.ReadError{Message: Unreadable, Cause: err}
		}
		if n >= maxFormFields {
			return nil, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("the form has more than %d fields", maxFormFields)}
		}
		if err := r.take(part); err != nil {
			return nil, err
		}
	}
	if err := r.refusal(); err != nil {
		return nil, err
	}
	if r.file != nil {
		return nil, badField("file", "is required")
	}
	if err := f.checkSpeakers(r.entries[referencesName]); err != nil {
		return nil, err
	}
	return f, f.finish()
}

// formReading is the state of reading a form.
type formReading struct {
	form      *Form
	file      func(filename string, from io.Reader) error // nil once a file has been read
	reference func(from io.Reader) error
	entries   map[string]int // of each list
	// wrong holds the errors of fields whose last value so far is wrong.
	wrong map[string]error
}

// refusal returns the error of a wrong field.
func (r *formReading) refusal() error {
	if names := slices.Sorted(maps.Keys(r.wrong)); len(names) > 0 {
		return r.wrong[names[0]]
	}
	return nil
}

// take reads a part of the form. An empty field counts as missing; if a field
// that is not a list occurs twice, the last one counts. A file is not read after
// a wrong field.
func (r *formReading) take(part *multipart.Part) error {
	name := readName(part.FormName())
	_, isList := listFields[name.name]
	switch {
	case name.name == "file":
		if r.file == nil {
			return badField("file", "is given twice")
		}
		if err := r.refusal(); err != nil {
			return err
		}
		file := r.file
		r.file = nil
		return r.form.readFile(part, file)
	case name.name == referencesName && !r.form.Translate:
		return r.takeReference(name, part)
	}
	text, err := readField(part, name.name)
	if err != nil || text == "" {
		return err
	}
	if r.form.Translate && (isList || name.name == "stream") {
		return badField(name.name, "is not a field of a translation")
	}
	if isList {
		if err := r.inOrder(name); err != nil {
			return err
		}
		for _, entry := range name.entries(text) {
			r.entries[name.name]++
			if err := r.form.add(name.name, entry); err != nil {
				return err
			}
		}
		return nil
	}
	set := name.name + "." + name.member
	maps.DeleteFunc(r.wrong, func(other string, _ error) bool {
		return other == set || name.member == "" && strings.HasPrefix(other, set)
	})
	if err := r.form.set(name, text); err != nil {
		r.wrong[set] = err
	}
	return nil
}

// inOrder refuses a numbered entry of a list in a wrong position, because names
// and recordings of speakers are matched by position.
func (r *formReading) inOrder(name field) error {
	if next := r.entries[name.name]; name.number >= 0 && name.number != next {
		return badField(name.name+"[]", "number %d is out of place, expected number %d, counted from 0", name.number, next)
	}
	return nil
}

func (r *formReading) takeReference(name field, part *multipart.Part) error {
	if err := r.inOrder(name); err != nil {
		return err
	}
	return readReferences(jsonstream.Reader(part, Unreadable), func(audio io.Reader) error {
		n := r.entries[referencesName]
		if r.entries[referencesName]++; n >= maxKnownSpeakers {
			return badField(referencesName+"[]", "at most %d are taken", maxKnownSpeakers)
		}
		return readReference(audio, n, r.reference)
	})
}

// defaultName names a file without a name: its content is its format.
const defaultName = "audio"

func (f *Form) readFile(part *multipart.Part, file func(filename string, from io.Reader) error) error {
	f.Filename = cmp.Or(part.FileName(), defaultName)
	if !utf8.ValidString(f.Filename) { // old clients write it in their own encoding
		f.Filename, _ = charmap.Windows1252.NewDecoder().String(f.Filename)
	}
	if err := jsonstream.CheckText("file", f.Filename, maxFilename); err != nil {
		return badFile(err)
	}
	content := bufio.NewReader(jsonstream.Reader(part, Unreadable))
	head, err := content.Peek(len(jsonstream.DataURL))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch encoding := strings.ToLower(part.Header.Get("Content-Transfer-Encoding")); encoding {
	case "", "7bit", "8bit", "binary", "identity":
		if !strings.EqualFold(string(head), jsonstream.DataURL) { // no recording begins like this
			return file(f.Filename, content)
		}
	case "base64":
	default:
		return badField("file", "expected Content-Transfer-Encoding binary or base64, got %q", encoding)
	}
	decoded, err := jsonstream.Base64(content, "file")
	if err == nil {
		err = file(f.Filename, decoded)
	}
	if errors.As(err, new(*jsonstream.Error)) {
		return badFile(err)
	}
	return err
}

func badFile(err error) *Error {
	return &Error{Status: http.StatusBadRequest, Message: err.Error(), Param: "file", cause: err}
}

func readField(part *multipart.Part, name string) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(jsonstream.Reader(part, Unreadable), maxFormField+1))
	text := string(raw)
	valid := utf8.ValidString(text) && !strings.ContainsRune(text, 0)
	switch {
	case err != nil:
		return "", err
	case part.FileName() != "" && (len(raw) > maxFormField || !valid):
		return "", badField(name, "is a file: the recording is expected in the field file")
	case len(raw) > maxFormField:
		return "", badField(name, "is longer than %d bytes", maxFormField)
	case !valid:
		return "", badField(name, "not valid text")
	}
	return text, nil
}

// set reads a field that is not a list. Unknown fields are ignored, because
// clients send fields that this service does not need ("user").
func (f *Form) set(name field, text string) (err error) {
	word := strings.TrimSpace(text)
	switch name.name {
	case "chunking_strategy":
		return f.setChunking(name.member, word)
	case "model":
		f.model, err = f.names.find(word)
		return err
	case "response_format":
		f.format = word
	case "language":
		if f.Options.ASRLanguage = &word; strings.EqualFold(word, "auto") {
			f.Options.ASRLanguage = nil
		}
	case "prompt":
		// Clients send the text so far, of which every server uses the last
		// 224 tokens.
		if runes := []rune(text); len(runes) > maxPrompt {
			text = string(runes[len(runes)-maxPrompt:])
		}
		f.Options.InitialPrompt = &text
	case "temperature":
		t, err := number(name.name, text, "a number from 0 to 1")
		if err != nil {
			return err
		}
		f.Options.ASRTemperature = &t
	case "audio_track":
		track, err := strconv.Atoi(word)
		if err != nil {
			return badField(name.name, "must be an integer, not %q", spec.Shorten(text))
		}
		f.Options.AudioTrack = &track
	case "stream":
		return setBool(&f.Stream, name.name, word)
	case "cancel_on_disconnect":
		return setBool(&f.CancelOnDisconnect, name.name, word)
	}
	return nil
}

func setBool(dst *bool, name, word string) (err error) {
	if *dst, err = strconv.ParseBool(word); err != nil {
		return badField(name, "must be true or false, not %q", spec.Shorten(word))
	}
	return nil
}

// add reads an entry of a list.
func (f *Form) add(name, text string) error {
	switch name {
	case "timestamp_granularities":
		switch text {
		case "word":
			f.words = true
		case "segment":
			f.segments = true
		default:
			return badField(name+"[]", "must be word or segment, not %q", spec.Shorten(text))
		}
	case "include":
		if text != "logprobs" {
			return badField(name+"[]", "must be logprobs, not %q", spec.Shorten(text))
		}
		f.logprobs = true
	case "keywords":
		if strings.ContainsAny(text, "<>\r\n") {
			return badField(name+"[]", "must have no <, > or line break, unlike %q", spec.Shorten(text))
		}
		f.Options.Hotwords = append(f.Options.Hotwords, text)
	case "languages":
		code, ok := spec.NormalizeLanguage(text)
		if !ok {
			return badField(name+"[]", "must be ISO 639-1 codes, not %q", spec.Shorten(text))
		}
		if !slices.Contains(f.Languages, code) {
			f.Languages = append(f.Languages, code)
		}
	case "known_speaker_names":
		f.Speakers = append(f.Speakers, text)
	}
	return nil
}

// setChunking reads chunking_strategy: "auto", a JSON object, or a member of
// that object. Its members are options of the voice activity detector.
func (f *Form) setChunking(member, text string) error {
	const name = "chunking_strategy"
	if member != "" {
		return f.setDetector(member, text)
	}
	f.Options.VADThreshold, f.Options.VADMinSilenceMS, f.Options.VADSpeechPadMS = nil, nil, nil
	if !strings.HasPrefix(text, "{") {
		if text != "auto" {
			return badField(name, "must be auto or an object of the type server_vad, not %q", spec.Shorten(text))
		}
		return nil
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return badField(name, "is not a JSON object: %v", err)
	}
	for member, value := range members {
		if value == nil {
			continue
		}
		if err := f.setDetector(member, fmt.Sprint(value)); err != nil {
			return err
		}
	}
	return nil
}

// setDetector reads a member of chunking_strategy.
func (f *Form) setDetector(member, text string) error {
	const name = "chunking_strategy"
	var milliseconds **int
	switch member {
	case "type":
		if text != "server_vad" {
			return badField(name, "type must be server_vad, not %q", spec.Shorten(text))
		}
		return nil
	case "threshold":
		t, err := number(name+"."+member, text, "a number from 0 to 1")
		f.Options.VADThreshold = &t
		return err
	case "silence_duration_ms":
		milliseconds = &f.Options.VADMinSilenceMS
	case "prefix_padding_ms":
		milliseconds = &f.Options.VADSpeechPadMS
	default:
		return badField(name, "has no field %q; there are type, threshold, silence_duration_ms and prefix_padding_ms", spec.Shorten(member))
	}
	ms, err := number(name+"."+member, text, "a number of milliseconds")
	if err != nil {
		return err
	}
	if ms != math.Trunc(ms) || math.Abs(ms) > math.MaxInt32 {
		return badField(name, "%s must be a whole number, not %q", member, spec.Shorten(text))
	}
	*milliseconds = new(int(ms))
	return nil
}

// finish checks the form as a whole and completes its options.
func (f *Form) finish() error {
	allowed := formats
	if f.Translate {
		allowed = slices.DeleteFunc(slices.Clone(formats), func(format string) bool { return format == formatDiarized })
	}
	if !slices.Contains(allowed, f.format) {
		return badField("response_format", "must be %s, not %q", strings.Join(allowed, ", "), spec.Shorten(f.format))
	}
	if f.Translate && (f.model.diarize || f.model.optimize != nil && *f.model.optimize) {
		return badField("model", "%s does not translate; use otograph", f.model.id)
	}
	if f.format != formatVerbose { // ignored in other formats, as by OpenAI
		f.words, f.segments = false, false
	}
	if f.model.id == "whisper-1" && !f.streams() { // OpenAI ignores stream for it
		f.Stream = false
	}
	if f.logprobs && f.format != formatJSON {
		return badField("include[]", "logprobs requires response_format json")
	}
	if f.Stream && !f.streams() {
		return badField("stream", "requires response_format json, text or diarized_json")
	}
	f.segments = f.segments || !f.words
	f.Options.EnableDiarize, f.Options.EnableAudioEvents = new(f.model.diarize || f.format == formatDiarized), &no
	f.Options.Optimize = f.model.optimize
	level := spec.TimestampSegment
	// Subtitles split long lines at words, and only the standard tier has word
	// times and the words' probabilities.
	if f.words || f.logprobs || f.format == formatSRT || f.format == formatVTT {
		level = spec.TimestampWord
	}
	if f.Translate {
		f.Options.Optimize = &no
	}
	if f.words || f.logprobs {
		if f.model.optimize != nil && *f.model.optimize {
			return badField("model", "%s does not provide words with times and probabilities; use otograph-standard", f.model.id)
		}
		f.Options.Optimize = &no
	}
	f.Options.TimestampLevel = &level
	if err := f.chooseLanguage(); err != nil {
		return err
	}
	var err error
	if f.Effective, err = f.Options.Effective(); err != nil {
		return optionError(err)
	}
	return nil
}

// chooseLanguage sets the language: the field's, or the only one of the list.
func (f *Form) chooseLanguage() error {
	switch given := f.Options.ASRLanguage; {
	case given != nil && len(f.Languages) > 0:
		code, ok := spec.NormalizeLanguage(*given)
		if ok && !slices.Contains(f.Languages, code) {
			return badField("languages[]", "must contain language (%s) where both are given", code)
		}
		f.Languages = nil
	case len(f.Languages) == 1:
		f.Options.ASRLanguage, f.Languages = &f.Languages[0], nil
	}
	return nil
}

func (f *Form) streams() bool {
	return slices.Contains([]string{formatJSON, formatText, formatDiarized}, f.format)
}

// Model returns the folder's model that the form names, "" for the default.
func (f *Form) Model() string { return f.model.file }

// Measures reports whether the response shows the recognizer's measures.
func (f *Form) Measures() bool { return f.format == formatVerbose && f.segments }

// optionFields are the fields of the form that set options.
var optionFields = map[string]string{
	"hotwords": "keywords[]", "asr_language": "language", "initial_prompt": "prompt", "asr_temperature": "temperature", "audio_track": "audio_track",
	"vad_threshold": "chunking_strategy.threshold", "vad_min_silence_ms": "chunking_strategy.silence_duration_ms", "vad_speech_pad_ms": "chunking_strategy.prefix_padding_ms",
}

// optionError names the field of the form in place of the option.
func optionError(err error) *Error {
	e := &Error{Status: http.StatusBadRequest, Message: err.Error(), cause: err}
	for option, field := range optionFields {
		if message, ok := strings.CutPrefix(e.Message, option); ok {
			e.Message, e.Param = field+message, field
		}
	}
	return e
}
