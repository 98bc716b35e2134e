// Package realtime is the door of OpenAI's realtime interface (GA, of 2026) for
// sessions of the type transcription.
package realtime

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// Models sets the options of a session that a model's name stands for. Its
// errors are for the client.
type Models func(name string, options *spec.Options, extras *spec.Extras) error

// Door is a doors.Door for one connection.
type Door struct {
	id      string // of the session
	expires int64  // Unix time
	models  Models
	config  config
	secret  bool // opened with a client secret, so that the callback cannot be changed
	events  int  // sent so far

	current *item              // takes the next sound, without turn detection
	of      map[int]*utterance // by number
	items   int                // so far
	last    string             // id of the last committed item
	mark    float64            // where the last item ended, in seconds

	received float64 // seconds of sound
	idled    bool    // the timeout of the present silence has passed
}

// New returns the door of a connection to a model ("" for the default). session
// is a session of POST /realtime/client_secrets, or empty. id is the task's.
// Errors are *Error.
func New(id, model string, session json.RawMessage, models Models, longest time.Duration) (*Door, error) {
	d := &Door{id: id, expires: time.Now().Add(longest).Unix(), models: models, config: defaults(), secret: len(session) > 0, of: map[int]*utterance{}}
	var err error
	if len(session) > 0 {
		err = d.config.update(session, models)
	}
	if err == nil && model != "" {
		model, _ := json.Marshal(model)
		err = d.config.update(fmt.Appendf(nil, `{"audio":{"input":{"transcription":{"model":%s}}}}`, model), models)
	}
	return d, err
}

// Settings returns the settings of the session.
func (d *Door) Settings() doors.Settings { return d.config.settings }

// Terms returns the client's terms for the session's task.
func (d *Door) Terms() Terms { return d.config.terms }

func (d *Door) event(kind string, fields doors.Object) []byte {
	d.events++
	fields["event_id"] = fmt.Sprintf("event_%s_%d", d.id, d.events)
	return doors.Message(kind, fields)[0]
}

// Begin implements doors.Door.
func (d *Door) Begin() [][]byte { return [][]byte{d.session("session.created")} }

func (d *Door) session(kind string) []byte {
	return d.event(kind, doors.Object{"session": d.config.session("sess_"+d.id, d.expires)})
}

// Error is a mistake of the client, in the terms of OpenAI's interface.
type Error struct{ Code, Param, Message string }

// Error implements error.
func (e *Error) Error() string { return e.Message }

func wrongValue(param, format string, args ...any) error {
	return &Error{"invalid_value", param, fmt.Sprintf(format, args...)}
}

// failure returns an event for an error; kind is OpenAI's type of it.
func (d *Door) failure(kind string, e Error, cause string) []byte {
	return d.event("error", doors.Object{"error": doors.Object{
		"type": kind, "code": e.Code, "param": orNull(e.Param), "message": e.Message, "event_id": orNull(cause),
	}})
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// maxAppend limits the sound of one event, in bytes: OpenAI's 15 MiB.
const maxAppend = 15 << 20

// MaxMessage is the largest message that a Door takes, in bytes.
const MaxMessage = maxAppend*4/3 + 64<<10

// Receive implements doors.Door. Mistakes of the client become error events;
// the session continues.
func (d *Door) Receive(text bool, data []byte) (actions []doors.Action, replies [][]byte, err error) {
	var m struct {
		Type    string          `json:"type"`
		EventID string          `json:"event_id"`
		Audio   *string         `json:"audio"`
		Session json.RawMessage `json:"session"`
	}
	if err = json.Unmarshal(data, &m); err != nil || !text || m.Type == "" {
		err = &Error{"invalid_json", "", "expected a JSON object with a type in a text message"}
	} else {
		switch m.Type {
		case "session.update":
			actions, replies, err = d.update(m.Session)
		case "input_audio_buffer.append":
			if actions, err = decoded(m.Audio); err == nil {
				replies = d.idle(actions[0].(doors.Audio))
			}
		case "input_audio_buffer.commit":
			actions = []doors.Action{doors.Commit{}}
		case "input_audio_buffer.clear":
			actions = []doors.Action{doors.Clear{}}
		default:
			err = refused(m.Type)
		}
	}
	if err != nil {
		e := new(Error)
		errors.As(err, &e)
		return nil, [][]byte{d.failure("invalid_request_error", *e, m.EventID)}, nil
	}
	return actions, replies, nil
}

// refused returns the error for an event that is not served.
func refused(kind string) error {
	switch family, _, _ := strings.Cut(kind, "."); family {
	case "response", "conversation", "output_audio_buffer":
		return &Error{"invalid_event", "type", spec.Shorten(kind) + ": this session transcribes; conversations are not served"}
	case "transcription_session":
		return &Error{"invalid_event", "type", spec.Shorten(kind) + " is of the beta interface: send session.update with session.type transcription"}
	}
	return &Error{"invalid_event", "type", "there is no event " + spec.Shorten(kind) + "; there are session.update, input_audio_buffer.append, .commit and .clear"}
}

func decoded(audio *string) ([]doors.Action, error) {
	if audio == nil {
		return nil, &Error{"missing_required_parameter", "audio", "audio: is required, base64"}
	}
	sound, err := base64.StdEncoding.DecodeString(*audio)
	if err != nil {
		return nil, wrongValue("audio", "audio: is not base64")
	}
	if len(sound) > maxAppend {
		return nil, wrongValue("audio", "audio: has %d bytes, more than 15 MiB", len(sound))
	}
	return []doors.Action{doors.Audio(sound)}, nil
}

// update takes a session.update.
func (d *Door) update(session json.RawMessage) (actions []doors.Action, replies [][]byte, err error) {
	next := d.config
	next.transcription, next.detection = copied(next.transcription), copied(next.detection)
	if err := next.update(session, d.models); err != nil {
		return nil, nil, err
	}
	if t, has := &next.terms, d.config.terms.CallbackURL; d.secret {
		if t.CallbackURL != "" && t.CallbackURL != has || t.CallbackSecret != "" {
			return nil, nil, wrongValue("session.otograph.callback_url", "otograph: a session of a client secret has the callback of POST /v1/realtime/client_secrets, no other")
		}
		t.CallbackURL = has
	}
	d.config = next
	replies = [][]byte{d.session("session.updated")}
	if it := d.current; it != nil && !next.settings.Manual { // turn detection takes it over
		it.turn, d.current = true, nil
		if n := len(it.list); n == 0 || it.list[n-1].stopped {
			replies = append(replies, d.commit(it)...)
		}
	}
	return []doors.Action{doors.Configure{Settings: next.settings}}, replies, nil
}

// End implements doors.Door. Clients take any error event for a failure of
// their own request, so the end of a session has an error event only if the
// client or its account is the cause.
func (d *Door) End(e doors.End) (messages [][]byte, code int, reason string) {
	if kinds := map[doors.Reason][2]string{
		doors.Expired: {"invalid_request_error", "session_expired"}, doors.Unpaid: {"insufficient_quota", "insufficient_quota"},
		doors.Limited: {"rate_limit_error", "rate_limit_exceeded"}, doors.Invalid: {"invalid_request_error", "invalid_value"},
		doors.Canceled: {"invalid_request_error", "invalid_value"},
	}[e.Reason]; kinds[0] != "" {
		messages = [][]byte{d.failure(kinds[0], Error{Code: kinds[1], Message: e.Text}, "")}
	}
	return messages, e.Reason.Code(), e.Text
}
