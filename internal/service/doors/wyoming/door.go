package wyoming

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// Door is the door of a connection, for one transcription.
type Door struct {
	languages []string
	set       doors.Settings
	vad       bool // the end of speech ends the transcription
	over      bool // it has
	turn      doors.Turn
	text      string // of the utterances that have ended
	sent      string // in transcript-chunk events, the first after transcript-start
}

// NewDoor returns the door of a connection, and the terms of its session.
// languages are the languages of the installed models.
func NewDoor(languages []string) (*Door, doors.Settings) {
	no, level := false, spec.TimestampSegment
	d := &Door{languages: languages}
	d.set.Options = spec.Options{EnableDiarize: &no, EnableAudioEvents: &no, TimestampLevel: &level}
	return d, d.set
}

// Begin implements doors.Door.
func (d *Door) Begin() [][]byte { return nil }

// pauses are the pauses, in seconds, that end a command, by vad_sensitivity.
var pauses = map[string]float64{"relaxed": 1.25, "default": 0.7, "aggressive": 0.3}

// Receive implements doors.Door. Sound comes in binary messages, all else in
// texts.
func (d *Door) Receive(text bool, data []byte) (actions []doors.Action, replies [][]byte, err error) {
	switch {
	case d.over:
		return []doors.Action{doors.Finish{}}, nil, nil
	case !text && d.set.Format.Rate == 0:
		return nil, nil, errors.New("audio-chunk: expected audio-start before it")
	case !text:
		return []doors.Action{doors.Audio(data)}, nil, nil
	}
	var e struct {
		Type string
		Data struct {
			Name, Language, Text  string
			Sensitivity           string   `json:"vad_sensitivity"`
			Names                 []string `json:"transcript_names"`
			Terms                 []string `json:"transcript_terms"`
			Rate, Width, Channels int
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, nil, fmt.Errorf("event: %w", err)
	}
	switch e.Type {
	case "describe":
		languages, _ := json.Marshal(d.languages)
		return nil, event("info", json.RawMessage(strings.Replace(description, `"languages": []`, `"languages": `+string(languages), 1))), nil
	case "ping":
		return nil, event("pong", doors.Object{"text": e.Data.Text}), nil
	case "transcribe":
		d.set.Options.Hotwords = append(e.Data.Names, e.Data.Terms...)
		if e.Data.Language != "" {
			d.set.Options.ASRLanguage = &e.Data.Language
		}
		if e.Data.Name != name {
			d.set.Extras.Model = e.Data.Name
		}
		d.set.Silence, d.vad = pauses[e.Data.Sensitivity], pauses[e.Data.Sensitivity] > 0
		return d.terms()
	case "audio-start":
		if e.Data.Width != 2 || e.Data.Rate < 8000 || e.Data.Rate > 96000 || e.Data.Channels < 1 || e.Data.Channels > 8 {
			return nil, nil, errors.New("audio-start: expected width 2, rate 8000 to 96000 and channels 1 to 8")
		}
		d.set.Format = doors.Format{Encoding: "s16le", Rate: e.Data.Rate, Channels: e.Data.Channels}
		return d.terms()
	case "audio-stop":
		return []doors.Action{doors.Finish{}}, nil, nil
	}
	return nil, nil, nil
}

// terms sets the terms of the session, from audio-start on.
func (d *Door) terms() (actions []doors.Action, replies [][]byte, err error) {
	if d.set.Format.Rate > 0 {
		_, err = d.set.Options.Effective()
		actions = []doors.Action{doors.Configure{Settings: d.set}}
	}
	return actions, nil, err
}

const name = "otograph"

// description is the data of the event info, without the languages.
//
//go:embed info.json
var description string

// Send implements doors.Door.
func (d *Door) Send(e spec.LiveEvent) [][]byte {
	if e.Kind != spec.LivePartial && e.Kind != spec.LiveFinal || !d.turn.Of(e) {
		return nil
	}
	text := d.text + spec.Separated(d.text, e.Text)
	if e.Kind == spec.LiveFinal {
		d.text = text
		d.over = d.over || d.vad && e.Text != ""
	}
	more, ok := strings.CutPrefix(text, d.sent)
	if !ok || more == "" {
		return nil
	}
	var list [][]byte
	if d.sent == "" {
		list = event("transcript-start", doors.Object{})
	}
	d.sent = text
	return append(list, event("transcript-chunk", doors.Object{"text": more})...)
}

// End implements doors.Door.
func (d *Door) End(e doors.End) (messages [][]byte, code int, reason string) {
	if e.Reason != doors.Finished {
		return event("error", doors.Object{"text": cmp.Or(e.Text, "the event cannot be read: expected a line of JSON, its data and its payload")}), 0, ""
	}
	o := doors.Object{"text": d.text}
	if e.Result != nil {
		o["language"] = e.Result.Language
	}
	messages = event("transcript", o)
	if d.sent != "" {
		messages = append(messages, event("transcript-stop", doors.Object{})...)
	}
	return messages, 0, ""
}

// event returns an event as the only message: a line, and its data.
func event(kind string, data any) [][]byte {
	body, _ := json.Marshal(data) // texts and numbers
	return [][]byte{fmt.Appendf(nil, `{"type":%q,"version":"1.10.2","data_length":%d}`+"\n%s", kind, len(body), body)}
}
