package realtime

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// Terms are a client's settings for its session's task: the addition "otograph"
// to OpenAI's session.
type Terms struct {
	Store          bool   `json:"store"`
	CallbackURL    string `json:"callback_url"`
	CallbackSecret string `json:"callback_secret"`
}

// transcription is session.audio.input.transcription.
type transcription struct {
	Model     string   `json:"model"`
	Language  *string  `json:"language,omitempty"`
	Languages []string `json:"languages,omitempty"`
	Prompt    *string  `json:"prompt,omitempty"`
	Keywords  []string `json:"keywords,omitempty"`
	Delay     *string  `json:"delay,omitempty"`
}

// detection is session.audio.input.turn_detection.
type detection struct {
	Type      string   `json:"type"`
	Threshold *float64 `json:"threshold,omitempty"`
	Padding   *float64 `json:"prefix_padding_ms,omitempty"`
	Silence   *float64 `json:"silence_duration_ms,omitempty"`
	Idle      *float64 `json:"idle_timeout_ms,omitempty"`
	Eagerness string   `json:"eagerness,omitempty"`
}

type format struct {
	Type string `json:"type"`
	Rate int    `json:"rate,omitempty"`
}

// config holds the settings that a session.update changes.
type config struct {
	format        format
	noise         json.RawMessage
	transcription *transcription
	detection     *detection
	detects       bool // the client has chosen detection
	include       []string
	terms         Terms
	settings      doors.Settings
}

// The defaults of OpenAI's interface.
const (
	defaultRate    = 24000
	defaultPadding = 300.0
	defaultSilence = 500.0
)

func defaults() config {
	c := config{format: format{"audio/pcm", defaultRate}}
	_ = c.complete(nil) // without a model's name, complete cannot fail
	return c
}

// copied returns a copy that shares no memory: update decodes into it.
func copied[T any](p *T) *T {
	data, _ := json.Marshal(p)
	var out *T
	_ = json.Unmarshal(data, &out)
	return out
}

// update takes the fields of a session: absent ones stay, null ones are cleared.
func (c *config) update(session json.RawMessage, models Models) error {
	var s struct {
		Type  string `json:"type"`
		Audio struct {
			Input struct {
				Format        json.RawMessage `json:"format"`
				Noise         json.RawMessage `json:"noise_reduction"`
				Transcription json.RawMessage `json:"transcription"`
				Detection     json.RawMessage `json:"turn_detection"`
			} `json:"input"`
		} `json:"audio"`
		Include           json.RawMessage `json:"include"`
		Otograph          *Terms          `json:"otograph"`
		BetaFormat        json.RawMessage `json:"input_audio_format"`
		BetaTranscription json.RawMessage `json:"input_audio_transcription"`
		BetaDetection     json.RawMessage `json:"turn_detection"`
	}
	if json.Unmarshal(session, &s) != nil {
		return wrongValue("session", "session: must be an object as OpenAI's interface describes it")
	}
	if s.Type != "" && s.Type != "transcription" {
		return wrongValue("session.type", "session.type: conversations are not served, only transcription")
	}
	in := s.Audio.Input
	if in.Noise != nil {
		c.noise = in.Noise
	}
	if in.Detection != nil {
		c.detects, c.detection = true, nil
	}
	if given := (struct{ Language, Languages json.RawMessage }{}); c.transcription != nil && json.Unmarshal(in.Transcription, &given) == nil && (given.Language != nil || given.Languages != nil) {
		c.transcription.Language, c.transcription.Languages = nil, nil // a new choice replaces the last one
	}
	for _, field := range []struct {
		name, betaName string
		data, beta     json.RawMessage
		into           any
	}{
		{"format", "input_audio_format", in.Format, s.BetaFormat, &c.format},
		{"transcription", "input_audio_transcription", in.Transcription, s.BetaTranscription, &c.transcription},
		{"turn_detection", "turn_detection", in.Detection, s.BetaDetection, &c.detection},
	} {
		param := "session.audio.input." + field.name
		if field.beta != nil { // ignored, it would leave a wrong format or language
			return wrongValue("session."+field.betaName, "session.%s: is of the beta interface: use %s", field.betaName, param)
		}
		if field.data != nil && json.Unmarshal(field.data, field.into) != nil {
			return wrongValue(param, "%s: has a value of another type than OpenAI's interface describes", param)
		}
	}
	if s.Include != nil {
		c.include = nil
		if json.Unmarshal(s.Include, &c.include) != nil {
			return wrongValue("session.include", "session.include: must be a list of texts")
		}
	}
	if s.Otograph != nil {
		c.terms = *s.Otograph
	}
	return c.complete(models)
}

// encodings maps the types of OpenAI's formats to doors.Format encodings.
var encodings = map[string]string{"audio/pcm": "s16le", "audio/pcmu": "mulaw", "audio/pcma": "alaw"}

// delays are OpenAI's names of delays; from index careful on, interim texts
// wait for a third recognition.
var delays = []string{"minimal", "low", "medium", "high", "xhigh"}

const careful = 3

// notDetecting lists the models that OpenAI serves without turn detection.
var notDetecting = []string{"gpt-live-transcribe", "gpt-realtime-whisper"}

// complete validates the fields and derives the settings.
func (c *config) complete(models Models) error {
	set := doors.Settings{Silence: defaultSilence / 1000}
	t := cmp.Or(c.transcription, &transcription{})
	o := &set.Options
	o.EnableDiarize, o.EnableAudioEvents = new(false), new(slices.Contains(c.include, "otograph.sounds"))
	if t.Model != "" {
		if err := models(t.Model, o, &set.Extras); err != nil {
			return &Error{"model_not_found", "session.audio.input.transcription.model", err.Error()}
		}
	}
	if slices.Contains(c.include, "otograph.speakers") {
		o.EnableDiarize = new(true)
	}
	if err := c.completeFormat(&set.Format); err != nil {
		return err
	}
	languages := t.Languages
	if t.Language != nil && *t.Language != "" {
		languages = []string{*t.Language}
	}
	for _, name := range languages {
		code, ok := spec.NormalizeLanguage(name)
		if !ok {
			return wrongValue("session.audio.input.transcription.language", "language: %s is not known", spec.Shorten(name))
		}
		set.Extras.Languages = append(set.Extras.Languages, code)
	}
	if len(set.Extras.Languages) == 1 {
		o.ASRLanguage, set.Extras.Languages = &set.Extras.Languages[0], nil
	}
	o.Hotwords = t.Keywords
	if t.Prompt != nil && *t.Prompt != "" {
		const most = 1000 // characters at the end that have an effect
		prompt := []rune(*t.Prompt)
		o.InitialPrompt = new(string(prompt[max(0, len(prompt)-most):]))
	}
	if _, err := o.Effective(); err != nil {
		return wrongValue("session.audio.input.transcription", "%v", err)
	}
	if t.Delay != nil {
		i := slices.Index(delays, *t.Delay)
		if i < 0 {
			return wrongValue("session.audio.input.transcription.delay", "delay: must be one of %s", strings.Join(delays, ", "))
		}
		set.Careful = i >= careful
	}
	if slices.ContainsFunc(notDetecting, func(name string) bool { return strings.HasPrefix(t.Model, name) }) {
		c.detection, c.detects = nil, true
	}
	if !c.detects {
		c.detection = &detection{Type: "server_vad", Threshold: new(0.5), Padding: new(defaultPadding), Silence: new(defaultSilence)}
	}
	set.Manual = c.detection == nil
	if d := c.detection; d != nil {
		// OpenAI waits up to 8, 4 and 2 s while a sentence seems to continue.
		eager := map[string]float64{"": 800, "auto": 800, "low": 1500, "medium": 800, "high": 500}
		ms, ok := eager[d.Eagerness]
		switch {
		case d.Type == "server_vad":
			ms = cmp.Or(*cmp.Or(d.Silence, new(0.0)), defaultSilence)
		case d.Type != "semantic_vad" || !ok:
			return wrongValue("session.audio.input.turn_detection.type", "turn_detection: must be server_vad or semantic_vad, with an eagerness of low, medium, high or auto, or null")
		}
		set.Silence = min(max(ms/1000, 0.1), 10)
		if p := cmp.Or(d.Threshold, new(0.5)); *p != 0.5 { // OpenAI's default 0.5 is our 0.35; 0 and 1 are the same
			o.VADThreshold = new(max(0.7**p, 1.3**p-0.3))
			if !(*p >= 0 && *p <= 1) {
				return wrongValue("session.audio.input.turn_detection.threshold", "threshold: must be 0 to 1, not %v", *p)
			}
		}
		if ms := d.Idle; ms != nil && !(*ms >= 5000 && *ms <= 30000) {
			return wrongValue("session.audio.input.turn_detection.idle_timeout_ms", "idle_timeout_ms: must be 5000 to 30000, not %v", *ms)
		}
	}
	c.settings = set
	return nil
}

func (c *config) completeFormat(f *doors.Format) error {
	f.Encoding, f.Channels, f.Rate = encodings[c.format.Type], 1, 8000
	if f.Encoding == "s16le" {
		f.Rate = cmp.Or(c.format.Rate, defaultRate)
		c.format.Rate = f.Rate
	} else {
		c.format.Rate = 0
	}
	if f.Encoding == "" {
		return wrongValue("session.audio.input.format.type", "format.type: must be audio/pcm, audio/pcmu or audio/pcma, not %s", spec.Shorten(c.format.Type))
	}
	if f.Rate < 8000 || f.Rate > 48000 {
		return wrongValue("session.audio.input.format.rate", "format.rate: must be 8000 to 48000 Hz, not %d", f.Rate)
	}
	return nil
}

// session returns the session of an event.
func (c *config) session(id string, expires int64) doors.Object {
	input := doors.Object{"format": c.format, "noise_reduction": nil, "transcription": c.transcription, "turn_detection": c.detection}
	if len(c.noise) > 0 && !bytes.Equal(c.noise, []byte("null")) {
		input["noise_reduction"] = c.noise
	}
	return doors.Object{
		"id": id, "object": "realtime.transcription_session", "type": "transcription", "expires_at": expires,
		"audio": doors.Object{"input": input}, "include": c.include,
	}
}

// Session checks a session of POST /realtime/client_secrets and returns it as
// the response shows it. Errors are *Error.
func Session(id string, session json.RawMessage, models Models, expires int64) (doors.Object, error) {
	c := defaults()
	if err := c.update(session, models); err != nil {
		return nil, err
	}
	return c.session(id, expires), nil
}
