package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/otograph/otograph/internal/jsonstream"
	"github.com/otograph/otograph/spec"
)

// Formats of the answer to POST /audio/transcriptions.
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
	maxFormField  = 16 << 10 // bytes of a field other than the file
	maxFormFields = 64
	maxFilename   = 255 // characters
)

// Form holds the parameters of POST /audio/transcriptions and /audio/translations.
type Form struct {
	Filename string
	Options  spec.Options
	Stream   bool // the answer is events
	// Translate asks for English, as POST /audio/translations does.
	Translate bool
	Speakers  []string // names of known speakers

	model    model
	format   string
	words    bool // word times
	segments bool // segments in verbose_json
	logprobs bool // the words' probabilities
}

// task names what is done, as verbose_json does.
func (f *Form) task() string {
	if f.Translate {
		return "translate"
	}
	return "transcribe"
}

// spoken is the English name of the text's language, as OpenAI's interface has it.
func (f *Form) spoken(result spec.Result) string {
	if f.Translate {
		return "english"
	}
	return cmp.Or(spec.LanguageName(result.Language), result.Language)
}

// ReadForm reads the form. file takes the audio as it comes, reference the recording of
// each known speaker; what they return of the service ends the reading unchanged. Other
// errors are an *Error or a *ReadError.
func ReadForm(mr *multipart.Reader, translate bool, file func(filename string, from io.Reader) error, reference func(from io.Reader) error) (*Form, error) {
	f := &Form{format: formatJSON, Translate: translate}
	seen := map[string]bool{}
	references := 0
	for n := 0; ; n++ {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, formError(err)
		}
		if n >= maxFormFields {
			return nil, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("the form has more than %d fields", maxFormFields)}
		}
		// Lists come as name[] from most clients, as name from some.
		name := strings.TrimSuffix(part.FormName(), "[]")
		if seen[name] && !slices.Contains(listFields, name) {
			return nil, badField(name, "is given twice")
		}
		seen[name] = true
		if name == "file" {
			if err := f.readFile(part, file); err != nil {
				return nil, err
			}
			continue
		}
		if translate && slices.Contains(notTranslated, name) {
			return nil, badField(name, "is not a field of a translation")
		}
		if name == "known_speaker_references" {
			if references++; references > maxKnownSpeakers {
				return nil, badField(name+"[]", "at most %d are taken", maxKnownSpeakers)
			}
			if err := readReference(formReader{part}, references-1, reference); err != nil {
				return nil, err
			}
			continue
		}
		text, err := readField(part, name)
		if err != nil {
			return nil, err
		}
		if err := f.set(name, text); err != nil {
			return nil, err
		}
	}
	if !seen["file"] {
		return nil, badField("file", "is required")
	}
	if err := f.checkSpeakers(references); err != nil {
		return nil, err
	}
	return f, f.finish()
}

// listFields may be given more than once.
var listFields = []string{"timestamp_granularities", "include", "known_speaker_names", "known_speaker_references"}

// notTranslated are the fields of a transcription that a translation does not have.
var notTranslated = []string{"timestamp_granularities", "include", "known_speaker_names", "known_speaker_references", "stream"}

func (f *Form) readFile(part *multipart.Part, file func(filename string, from io.Reader) error) error {
	if f.Filename = part.FileName(); f.Filename == "" {
		return badField("file", "must be a file with a name, to determine the extension")
	}
	if err := jsonstream.CheckText("file", f.Filename, maxFilename); err != nil {
		return &Error{Status: http.StatusBadRequest, Message: err.Error(), cause: err}
	}
	if !utf8.ValidString(f.Filename) {
		return badField("file", "the name is not valid UTF-8")
	}
	return file(f.Filename, formReader{part})
}

func readField(part *multipart.Part, name string) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(part, maxFormField+1))
	text := string(raw)
	switch {
	case err != nil:
		return "", formError(err)
	case len(raw) > maxFormField:
		return "", badField(name, "is longer than %d bytes", maxFormField)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", badField(name, "not valid text")
	}
	return text, nil
}

// set takes a field. Fields that are not known are passed over, as clients send
// what this service has no use for ("user").
func (f *Form) set(name, text string) (err error) {
	switch name {
	case "model":
		var ok bool
		if f.model, ok = findModel(text); !ok && text != "" {
			return noSuchModel(text)
		}
	case "response_format":
		f.format = text
	case "language":
		if text != "" {
			f.Options.ASRLanguage = &text
		}
	case "prompt":
		if text != "" {
			f.Options.InitialPrompt = &text
		}
	case "temperature":
		t, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return badField(name, "must be a number from 0 to 1, not %q", spec.Shorten(text))
		}
		f.Options.ASRTemperature = &t
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
	case "stream":
		if f.Stream, err = strconv.ParseBool(text); err != nil {
			return badField(name, "must be true or false, not %q", spec.Shorten(text))
		}
	case "known_speaker_names":
		f.Speakers = append(f.Speakers, strings.TrimSpace(text))
	default:
		if rest, ok := strings.CutPrefix(name, "chunking_strategy"); ok {
			return f.setChunking(rest, text)
		}
	}
	return nil
}

// setChunking takes chunking_strategy: "auto", a JSON object, or the fields of
// that object as fields of the form, "chunking_strategy[threshold]". They are the
// options of the voice activity detector.
func (f *Form) setChunking(key, text string) error {
	const name = "chunking_strategy"
	if key == "" && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		if text != "auto" && text != "" {
			return badField(name, "must be auto or an object of the type server_vad, not %q", spec.Shorten(text))
		}
		return nil
	}
	fields := map[string]json.RawMessage{}
	if key == "" {
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			return badField(name, "is not a JSON object: %v", err)
		}
	} else {
		key = strings.TrimSuffix(strings.TrimPrefix(key, "["), "]")
		fields[key] = json.RawMessage(text)
		if key == "type" {
			fields[key], _ = json.Marshal(text) // a string always is JSON
		}
	}
	for key, raw := range fields {
		var into any
		switch key {
		case "type":
			if string(raw) != `"server_vad"` {
				return badField(name, "type must be server_vad, not %s", spec.Shorten(string(raw)))
			}
			continue
		case "threshold":
			into = &f.Options.VADThreshold
		case "silence_duration_ms":
			into = &f.Options.VADMinSilenceMS
		case "prefix_padding_ms":
			into = &f.Options.VADSpeechPadMS
		default:
			return badField(name, "has no field %q; there are type, threshold, silence_duration_ms and prefix_padding_ms", spec.Shorten(key))
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return badField(name, "%s must be a number, not %s", key, spec.Shorten(string(raw)))
		}
	}
	return nil
}

// finish checks the form as a whole and completes its options.
func (f *Form) finish() error {
	known := formats
	if f.Translate {
		known = slices.DeleteFunc(slices.Clone(formats), func(format string) bool { return format == formatDiarized })
	}
	if !slices.Contains(known, f.format) {
		return badField("response_format", "must be %s, not %q", strings.Join(known, ", "), spec.Shorten(f.format))
	}
	if f.Translate && (f.model.diarize || f.model.optimize != nil && *f.model.optimize) {
		return badField("model", "%s does not translate; use otograph", f.model.id)
	}
	if (f.words || f.segments) && f.format != formatVerbose {
		return badField("timestamp_granularities[]", "needs response_format verbose_json")
	}
	if f.logprobs && f.format != formatJSON {
		return badField("include[]", "logprobs requires response_format json")
	}
	if f.Stream && f.format != formatJSON && f.format != formatText && f.format != formatDiarized {
		return badField("stream", "requires response_format json, text or diarized_json")
	}
	f.segments = f.segments || !f.words
	diarize := f.model.diarize || f.format == formatDiarized
	f.Options.EnableDiarize, f.Options.EnableAudioEvents = &diarize, &no
	f.Options.Optimize = f.model.optimize
	level := spec.TimestampSegment
	// Subtitles split long lines at words, and word times exist in the standard
	// tier alone, with the words' probabilities.
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
	if _, err := f.Options.Effective(); err != nil {
		return optionError(err)
	}
	return nil
}

// Measures reports whether the answer shows what the recognizer measured.
func (f *Form) Measures() bool { return f.format == formatVerbose && f.segments }

// optionFields are the fields of the form that set options.
var optionFields = map[string]string{
	"asr_language": "language", "initial_prompt": "prompt", "asr_temperature": "temperature",
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

// formReader converts the errors of a form's part to those that a client may
// see.
type formReader struct{ r io.Reader }

func (f formReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = formError(err)
	}
	return n, err
}

func formError(err error) error {
	return &ReadError{err}
}
