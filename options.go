package otograph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/events"
)

// TimestampLevel says how fine the times of a transcript are.
type TimestampLevel string

const (
	// TimestampWord gives every word its own start and end (standard tier only).
	TimestampWord TimestampLevel = "word"
	// TimestampSegment gives sentence-level segments alone.
	TimestampSegment TimestampLevel = "segment"
)

// Options is the specification's Options object. The zero value means every
// default; a field is set to override one. In Go 1.26 and later new(false) or
// new(3) makes the pointer.
//
// Decoding JSON into it is strict: an unknown name, a name in another case, a
// name given twice, a value of another type or out of bounds is an
// *OptionError that names the field by its JSON name.
type Options struct {
	// EnableASR switches transcription, with its cutting into speech segments. Default true.
	EnableASR *bool `json:"enable_asr"`
	// EnableDiarize switches speaker diarization; it needs EnableASR. Default true.
	EnableDiarize *bool `json:"enable_diarize"`
	// EnableAudioEvents switches sound-event detection (521 classes). Default true.
	EnableAudioEvents *bool `json:"enable_audio_events"`
	// Optimize chooses the tier: nil by the detected language, true the
	// optimized tier where the language allows it, false the standard tier.
	Optimize *bool `json:"optimize"`
	// OptimizeZh is the earlier variant of Optimize: true allows the optimized
	// tier for Chinese alone, false is the standard tier. It can't be given
	// together with Optimize.
	OptimizeZh *bool `json:"optimize_zh"`
	// TimestampLevel is "word" (default) or "segment".
	TimestampLevel *TimestampLevel `json:"timestamp_level"`
	// ASRLanguage is an ISO 639-1 or 639-3 code (names and region tags are
	// understood too); nil detects the language.
	ASRLanguage *string `json:"asr_language"`
	// ASRBeamSize is the width of the beam search, 1 to 20; default 5. The
	// native decoder keeps at most 8 beams: wider ones run with 8.
	ASRBeamSize *int `json:"asr_beam_size"`
	// ASRTemperature is the decoding temperature, 0 to 1; default 0 (greedy or beam).
	ASRTemperature *float64 `json:"asr_temperature"`
	// ASRBestOf is the number of sampled candidates, 1 to 20, when ASRTemperature > 0; nil is off.
	ASRBestOf *int `json:"asr_best_of"`
	// Hotwords are words to prefer, at most 200 of at most 64 characters.
	Hotwords []string `json:"hotwords"`
	// InitialPrompt steers the style of the transcript, at most 1,000 characters.
	InitialPrompt *string `json:"initial_prompt"`
	// VADThreshold is the speech probability from which a window is speech, 0 to 1; default 0.35.
	VADThreshold *float64 `json:"vad_threshold"`
	// VADMinSpeechMS drops shorter speech segments, 0 to 10,000 ms; default 250.
	VADMinSpeechMS *int `json:"vad_min_speech_ms"`
	// VADMinSilenceMS is the silence that ends a segment, 0 to 10,000 ms; default 100.
	VADMinSilenceMS *int `json:"vad_min_silence_ms"`
	// VADSpeechPadMS widens each segment on both sides, 0 to 2,000 ms; default 30.
	VADSpeechPadMS *int `json:"vad_speech_pad_ms"`
	// NoSpeechThreshold discards segments whose no-speech probability is above it, 0 to 1; default 0.6.
	NoSpeechThreshold *float64 `json:"no_speech_threshold"`
	// NumSpeakers fixes the number of speakers, 1 to 50; nil finds it.
	NumSpeakers *int `json:"num_speakers"`
	// MinSpeakers bounds the number that is found from below; default 1.
	MinSpeakers *int `json:"min_speakers"`
	// MaxSpeakers bounds the number that is found from above, at most 50; default 10.
	MaxSpeakers *int `json:"max_speakers"`
	// DiarizeMinSegmentSec is the shortest segment, in seconds, that yields a voice embedding, 0.1 to 10; default 0.5.
	DiarizeMinSegmentSec *float64 `json:"diarize_min_segment_sec"`
	// DiarizeSingleSpeakerThreshold is the silhouette below which there is one speaker, −1 to 1; default 0.05.
	DiarizeSingleSpeakerThreshold *float64 `json:"diarize_single_speaker_threshold"`
	// AudioEventsThreshold is the least confidence of a reported event, 0 to 1; default 0.3.
	AudioEventsThreshold *float64 `json:"audio_events_threshold"`
	// AudioEventsClasses are the English class names to listen for; nil is all 521.
	AudioEventsClasses []string `json:"audio_events_classes"`
}

// EffectiveOptions is an Options object with every default filled in, as a
// task echoes it: all fields are present in JSON, those without a value as null.
type EffectiveOptions struct {
	EnableASR                     bool           `json:"enable_asr"`
	EnableDiarize                 bool           `json:"enable_diarize"`
	EnableAudioEvents             bool           `json:"enable_audio_events"`
	Optimize                      *bool          `json:"optimize"`
	OptimizeZh                    *bool          `json:"optimize_zh,omitempty"` // only when the caller gave it
	TimestampLevel                TimestampLevel `json:"timestamp_level"`
	ASRLanguage                   *string        `json:"asr_language"`
	ASRBeamSize                   int            `json:"asr_beam_size"`
	ASRTemperature                float64        `json:"asr_temperature"`
	ASRBestOf                     *int           `json:"asr_best_of"`
	Hotwords                      []string       `json:"hotwords"`
	InitialPrompt                 *string        `json:"initial_prompt"`
	VADThreshold                  float64        `json:"vad_threshold"`
	VADMinSpeechMS                int            `json:"vad_min_speech_ms"`
	VADMinSilenceMS               int            `json:"vad_min_silence_ms"`
	VADSpeechPadMS                int            `json:"vad_speech_pad_ms"`
	NoSpeechThreshold             float64        `json:"no_speech_threshold"`
	NumSpeakers                   *int           `json:"num_speakers"`
	MinSpeakers                   int            `json:"min_speakers"`
	MaxSpeakers                   int            `json:"max_speakers"`
	DiarizeMinSegmentSec          float64        `json:"diarize_min_segment_sec"`
	DiarizeSingleSpeakerThreshold float64        `json:"diarize_single_speaker_threshold"`
	AudioEventsThreshold          float64        `json:"audio_events_threshold"`
	AudioEventsClasses            []string       `json:"audio_events_classes"`
}

// ErrOptions marks every error about an Options object; errors.Is finds it.
var ErrOptions = errors.New("invalid options")

// OptionError says which option is wrong, and what was expected.
type OptionError struct {
	Field  string // JSON name of the option; empty when the object itself is broken
	Reason string // what was expected and what came
}

// Error implements error.
func (e *OptionError) Error() string {
	if e.Field == "" {
		return "options: " + e.Reason
	}
	return e.Field + ": " + e.Reason
}

// Is makes errors.Is(err, ErrOptions) true.
func (e *OptionError) Is(target error) bool { return target == ErrOptions }

func optionError(field, format string, args ...any) error {
	return &OptionError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// maxSpeakers is the largest number of speakers that may be asked for.
const maxSpeakers = 50

// Effective validates the options and fills in the defaults of the
// specification. A broken rule is an *OptionError.
func (o Options) Effective() (EffectiveOptions, error) {
	e := EffectiveOptions{
		EnableASR:                     or(o.EnableASR, true),
		EnableDiarize:                 or(o.EnableDiarize, true),
		EnableAudioEvents:             or(o.EnableAudioEvents, true),
		Optimize:                      o.Optimize,
		OptimizeZh:                    o.OptimizeZh,
		TimestampLevel:                or(o.TimestampLevel, TimestampWord),
		ASRLanguage:                   o.ASRLanguage,
		ASRBeamSize:                   or(o.ASRBeamSize, 5),
		ASRTemperature:                or(o.ASRTemperature, 0),
		ASRBestOf:                     o.ASRBestOf,
		Hotwords:                      slices.Clone(o.Hotwords),
		InitialPrompt:                 o.InitialPrompt,
		VADThreshold:                  or(o.VADThreshold, 0.35),
		VADMinSpeechMS:                or(o.VADMinSpeechMS, 250),
		VADMinSilenceMS:               or(o.VADMinSilenceMS, 100),
		VADSpeechPadMS:                or(o.VADSpeechPadMS, 30),
		NoSpeechThreshold:             or(o.NoSpeechThreshold, 0.6),
		NumSpeakers:                   o.NumSpeakers,
		MinSpeakers:                   or(o.MinSpeakers, 1),
		MaxSpeakers:                   or(o.MaxSpeakers, 10),
		DiarizeMinSegmentSec:          or(o.DiarizeMinSegmentSec, 0.5),
		DiarizeSingleSpeakerThreshold: or(o.DiarizeSingleSpeakerThreshold, 0.05),
		AudioEventsThreshold:          or(o.AudioEventsThreshold, 0.3),
		AudioEventsClasses:            slices.Clone(o.AudioEventsClasses),
	}
	// Bounds that the caller did not set give way to the one that was set.
	if o.MinSpeakers != nil && o.MaxSpeakers == nil && e.MinSpeakers > e.MaxSpeakers && e.MinSpeakers <= maxSpeakers {
		e.MaxSpeakers = e.MinSpeakers
	}
	return e, e.validate()
}

func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

func (e *EffectiveOptions) validate() error {
	switch {
	case !e.EnableASR && !e.EnableDiarize && !e.EnableAudioEvents:
		return optionError("enable_asr", "at least one of enable_asr, enable_diarize and enable_audio_events must be true")
	case e.EnableDiarize && !e.EnableASR:
		return optionError("enable_diarize", "diarization needs transcription: enable_diarize=true requires enable_asr=true")
	case e.Optimize != nil && e.OptimizeZh != nil:
		return optionError("optimize_zh", "is the earlier name of optimize: give one of the two")
	case e.TimestampLevel != TimestampWord && e.TimestampLevel != TimestampSegment:
		return optionError("timestamp_level", "must be %q or %q, not %q", TimestampWord, TimestampSegment, shorten(string(e.TimestampLevel)))
	}
	for _, err := range []error{
		intIn("asr_beam_size", &e.ASRBeamSize, 1, 20),
		floatIn("asr_temperature", e.ASRTemperature, 0, 1),
		intIn("asr_best_of", e.ASRBestOf, 1, 20),
		floatIn("vad_threshold", e.VADThreshold, 0, 1),
		intIn("vad_min_speech_ms", &e.VADMinSpeechMS, 0, 10_000),
		intIn("vad_min_silence_ms", &e.VADMinSilenceMS, 0, 10_000),
		intIn("vad_speech_pad_ms", &e.VADSpeechPadMS, 0, 2_000),
		floatIn("no_speech_threshold", e.NoSpeechThreshold, 0, 1),
		intIn("num_speakers", e.NumSpeakers, 1, maxSpeakers),
		intIn("min_speakers", &e.MinSpeakers, 1, maxSpeakers),
		intIn("max_speakers", &e.MaxSpeakers, 1, maxSpeakers),
		floatIn("diarize_min_segment_sec", e.DiarizeMinSegmentSec, 0.1, 10),
		floatIn("diarize_single_speaker_threshold", e.DiarizeSingleSpeakerThreshold, -1, 1),
		floatIn("audio_events_threshold", e.AudioEventsThreshold, 0, 1),
	} {
		if err != nil {
			return err
		}
	}
	if e.MinSpeakers > e.MaxSpeakers {
		return optionError("min_speakers", "must not be above max_speakers: %d > %d", e.MinSpeakers, e.MaxSpeakers)
	}
	if e.ASRLanguage != nil {
		if _, ok := asr.NormalizeLanguage(*e.ASRLanguage); !ok {
			return optionError("asr_language", "unknown language %q: give an ISO 639-1 or 639-3 code such as en, zh or deu, or null to detect it", shorten(*e.ASRLanguage))
		}
	}
	return e.validateTexts()
}

func (e *EffectiveOptions) validateTexts() error {
	if len(e.Hotwords) > 200 {
		return optionError("hotwords", "at most 200 are allowed, not %d", len(e.Hotwords))
	}
	for i, w := range e.Hotwords {
		switch n := utf8.RuneCountInString(w); {
		case !utf8.ValidString(w) || strings.ContainsRune(w, 0):
			return optionError("hotwords", "entry %d is not valid text", i)
		case strings.TrimSpace(w) == "":
			return optionError("hotwords", "entry %d is empty", i)
		case n > 64:
			return optionError("hotwords", "entry %d has %d characters, at most 64 are allowed", i, n)
		}
	}
	if p := e.InitialPrompt; p != nil {
		if !utf8.ValidString(*p) || strings.ContainsRune(*p, 0) {
			return optionError("initial_prompt", "is not valid text")
		}
		if n := utf8.RuneCountInString(*p); n > 1000 {
			return optionError("initial_prompt", "has %d characters, at most 1000 are allowed", n)
		}
	}
	for _, name := range e.AudioEventsClasses {
		if _, ok := events.Lookup(name); !ok {
			return optionError("audio_events_classes", "there is no class %q; the nearest is %q", shorten(name), events.Nearest(name))
		}
	}
	return nil
}

func intIn(field string, v *int, lo, hi int) error {
	if v != nil && (*v < lo || *v > hi) {
		return optionError(field, "must be between %d and %d, not %d", lo, hi, *v)
	}
	return nil
}

func floatIn(field string, v, lo, hi float64) error {
	if !(v >= lo && v <= hi) { // NaN fails too
		return optionError(field, "must be between %g and %g, not %g", lo, hi, v)
	}
	return nil
}

// shorten keeps what a stranger sent from filling an error message.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// MarshalJSON writes the options that are set and leaves the others out.
func (o Options) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	v := reflect.ValueOf(o)
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			continue
		}
		b, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			return nil, err
		}
		if buf.Len() > 1 {
			buf.WriteByte(',')
		}
		fmt.Fprintf(&buf, "%q:%s", v.Type().Field(i).Tag.Get("json"), b)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// nullable are the options for which null means something: their default.
var nullable = []string{
	"optimize", "asr_language", "asr_best_of", "hotwords", "initial_prompt", "num_speakers", "audio_events_classes",
}

// OptionNames are the JSON names of all options, in the order of the specification.
func OptionNames() []string {
	t := reflect.TypeFor[Options]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

// UnmarshalJSON implements the strict decoding that the type's comment describes.
// It checks names and types; Effective checks values.
func (o *Options) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	tok, err := dec.Token()
	if err != nil {
		return optionError("", "not valid JSON: %v", err)
	}
	if tok != json.Delim('{') {
		return optionError("", "must be a JSON object")
	}
	v := reflect.ValueOf(o).Elem()
	names := OptionNames()
	seen := make(map[string]bool, len(names))
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return optionError("", "not valid JSON: %v", err)
		}
		name, _ := tok.(string)
		i := slices.Index(names, name)
		if i < 0 {
			return optionError(shorten(name), "there is no such option; did you mean %q?", Nearest(name, names))
		}
		if seen[name] {
			return optionError(name, "is given twice")
		}
		seen[name] = true
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return optionError(name, "not valid JSON: %v", err)
		}
		if err := setOption(v.Field(i), name, raw); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return optionError("", "not valid JSON: %v", err)
	}
	return nil
}

func setOption(field reflect.Value, name string, raw json.RawMessage) error {
	if string(raw) == "null" {
		if !slices.Contains(nullable, name) {
			return optionError(name, "must be %s, not null", wanted(field.Type()))
		}
		field.SetZero()
		return nil
	}
	if field.Type() == reflect.TypeFor[*int]() {
		var f float64 // 5.0 is an integer in JSON's eyes
		if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<31 {
			return optionError(name, "must be %s, not %s", wanted(field.Type()), shorten(string(raw)))
		}
		n := int(f)
		field.Set(reflect.ValueOf(&n))
		return nil
	}
	target := reflect.New(field.Type())
	if err := json.Unmarshal(raw, target.Interface()); err != nil || hasNull(target.Elem(), raw) {
		return optionError(name, "must be %s, not %s", wanted(field.Type()), shorten(string(raw)))
	}
	field.Set(target.Elem())
	return nil
}

// hasNull tells whether a list of strings holds a null, which encoding/json reads as "".
func hasNull(v reflect.Value, raw json.RawMessage) bool {
	if v.Kind() != reflect.Slice {
		return false
	}
	var list []*string
	return json.Unmarshal(raw, &list) != nil || slices.Contains(list, nil)
}

func wanted(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Slice:
		return "a list of strings"
	case t.Elem().Kind() == reflect.Bool:
		return "true or false"
	case t.Elem().Kind() == reflect.Int:
		return "an integer"
	case t.Elem().Kind() == reflect.Float64:
		return "a number"
	default:
		return "a string"
	}
}

// Nearest returns the candidate with the smallest edit distance to s: what a
// mistyped name was probably meant to be. It is empty when there is no candidate.
func Nearest(s string, candidates []string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	best, least := "", math.MaxInt
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(s), c); d < least {
			best, least = c, d
		}
	}
	return best
}

// editDistance is Levenshtein's distance over bytes; names are ASCII.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
