package deepgram

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// Flux is the door of GET /v2/listen. A turn is an utterance with some text.
type Flux struct {
	id         string
	set        doors.Settings
	thresholds map[string]float64
	sequence   int // of the next message
	index      int // of the next turn
	turn       doors.Turn
	shown      string // the turn's text so far; "" before StartOfTurn
	forced     int    // the utterance that ForceEndTurn has ended; −1 none
}

// bounds are the least, the greatest and the usual values of thresholds. Without
// eager_eot_threshold there is no EagerEndOfTurn.
var bounds = map[string][3]float64{"eot_threshold": {0.5, 1, 0.7}, "eager_eot_threshold": {0.3, 0.9, 0}, "eot_timeout_ms": {500, 60000, 5000}}

// NewFlux returns the door of a connection with an id, and the terms of its
// session. An error is a *spec.OptionError.
func NewFlux(values url.Values, id string) (*Flux, doors.Settings, error) {
	if values.Get("model") == "flux-general-en" {
		values.Set("language", "en")
	}
	q, err := ReadQuery(values)
	if err != nil {
		return nil, doors.Settings{}, err
	}
	f := &Flux{id: id, thresholds: map[string]float64{}, forced: -1}
	f.set, err = q.settings()
	for name, b := range bounds {
		f.thresholds[name] = q.number(name, b[2], b[0], b[1], &err)
	}
	f.set.Silence = f.silence()
	return f, f.set, err
}

// silence returns the pause, in seconds, that ends a turn: half a second for the
// usual threshold, in proportion for others, at most the timeout, and the
// timeout for 1.
func (f *Flux) silence() float64 {
	timeout := min(10, f.thresholds["eot_timeout_ms"]/1000) // the longest pause of a session
	if t := f.thresholds["eot_threshold"]; t < 1 {
		return min(timeout, t/1.4)
	}
	return timeout
}

// message returns a message with its number.
func (f *Flux) message(kind string, o doors.Object) [][]byte {
	o["request_id"], o["sequence_id"] = f.id, f.sequence
	f.sequence++
	return doors.Message(kind, o)
}

// Begin implements doors.Door.
func (f *Flux) Begin() [][]byte { return f.message("Connected", doors.Object{}) }

// Receive implements doors.Door.
func (f *Flux) Receive(text bool, data []byte) (actions []doors.Action, replies [][]byte, err error) {
	if !text && (len(data) > 0 || f.set.Format.Opus == "") {
		return []doors.Action{doors.Audio(data)}, nil, nil
	}
	c, wrong := parse(data)
	if Closes(text, data) {
		c.Type = "CloseStream"
	}
	switch c.Type {
	case "KeepAlive":
	case "ForceEndTurn":
		actions = []doors.Action{doors.Commit{}}
	case "CloseStream":
		actions = []doors.Action{doors.Finish{}}
	case "Configure":
		next := *f
		if err := cmp.Or(wrong, next.configure(c)); err != nil {
			return nil, f.message("ConfigureFailure", doors.Object{"code": "INVALID_CONFIGURATION", "description": err.Error()}), nil //nolint:nilerr // the client gets it, and the session continues
		}
		*f = next
		actions = []doors.Action{doors.Configure{Settings: f.set}}
		replies = f.message("ConfigureSuccess", doors.Object{"thresholds": f.thresholds, "keyterms": append([]string{}, f.set.Options.Hotwords...), "language_hints": append([]string{}, f.set.Extras.Languages...)})
	default:
		err = fmt.Errorf("type: expected CloseStream, ForceEndTurn or Configure, not %q", spec.Shorten(c.Type))
	}
	return actions, replies, err
}

// configure changes thresholds, the words that are expected and the languages.
func (f *Flux) configure(c command) error {
	f.thresholds = maps.Clone(f.thresholds)
	for name, v := range c.Thresholds {
		b, ok := bounds[name]
		if !ok || v != nil && !(*v >= b[0] && *v <= b[1]) {
			return fmt.Errorf("thresholds: %s: must be a number from %v to %v", spec.Shorten(name), b[0], b[1])
		}
		if v != nil {
			f.thresholds[name] = *v
		}
	}
	f.set.Silence = f.silence()
	if c.Keyterms != nil {
		f.set.Options.Hotwords = terms(*c.Keyterms)
	}
	if c.Hints != nil {
		q := &Query{values: url.Values{"language_hint": *c.Hints}}
		q.chooseLanguage()
		f.set.Options.ASRLanguage, f.set.Extras.Languages = nil, q.Extras.Languages
	}
	_, err := doors.Check(f.set.Options, names)
	return err
}

// Send implements doors.Door.
func (f *Flux) Send(e spec.LiveEvent) (list [][]byte) {
	switch {
	case e.Kind == spec.LiveCommitted:
		f.forced = e.Utterance
	case e.Kind == spec.LivePartial && f.turn.Of(e):
		return f.update(e, doors.Sketch(e))
	case e.Kind == spec.LiveSpeechStopped && f.turn.Of(e) && f.shown != "" && f.thresholds["eager_eot_threshold"] > 0:
		e.Text = f.shown
		return f.info(e, "EagerEndOfTurn", doors.Sketch(e), doors.Object{})
	case e.Kind == spec.LiveFinal && f.turn.Of(e):
		if f.shown == "" {
			list = f.update(e, e.Segments)
		}
		if f.shown == "" {
			return nil
		}
		trigger := "model"
		if e.Utterance == f.forced {
			trigger = "manual"
		} else if f.thresholds["eot_threshold"] == 1 {
			trigger = "timeout"
		}
		list = append(list, f.info(e, "EndOfTurn", e.Segments, doors.Object{"trigger": trigger})...)
		f.index, f.shown = f.index+1, ""
	}
	return list
}

// update reports the turn's text so far.
func (f *Flux) update(e spec.LiveEvent, segments []spec.Segment) [][]byte {
	kind := "Update"
	if e.Text == "" {
		return nil
	} else if f.shown == "" {
		kind = "StartOfTurn"
	}
	f.shown = e.Text
	return f.info(e, kind, segments, doors.Object{})
}

// info returns the state of the turn. The service decides whether a turn has
// ended, so that the probability is 0 or 1.
func (f *Flux) info(e spec.LiveEvent, event string, segments []spec.Segment, o doors.Object) [][]byte {
	text := alternative(segments)
	for _, w := range text["words"].([]doors.Object) {
		w["word"] = w["punctuated_word"]
		delete(w, "punctuated_word")
	}
	o["end_of_turn_confidence"] = map[string]int{"EndOfTurn": 1}[event]
	o["event"], o["turn_index"], o["audio_window_start"], o["audio_window_end"], o["transcript"], o["words"] = event, f.index, e.Start, e.End, text["transcript"], text["words"]
	return f.message("TurnInfo", o)
}

// End implements doors.Door.
func (f *Flux) End(e doors.End) (messages [][]byte, code int, reason string) {
	if e.Reason != doors.Finished {
		messages = f.message("Error", doors.Object{"code": "SESSION_ENDED", "description": e.Text})
	}
	return messages, e.Reason.Code(), e.Text
}
