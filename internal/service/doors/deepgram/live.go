package deepgram

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// encodings maps Deepgram's names of encodings to the values of Encoding, or of
// Opus, in a doors.Format. Without a name, the sound is in a container.
var encodings = map[string]string{"linear16": "s16le", "linear32": "f32le", "mulaw": "mulaw", "alaw": "alaw", "opus": "packets", "ogg-opus": "stream", "": "stream"}

// settings returns the terms of a session, without its pauses.
func (q *Query) settings() (s doors.Settings, err error) {
	s = doors.Settings{Options: q.Options, Extras: q.Extras, Revisable: true}
	encoding := encodings[q.values.Get("encoding")]
	s.Format = doors.Format{Encoding: encoding, Rate: int(q.number("sample_rate", doors.UsualRate(encoding), 8000, 96000, &err)), Channels: int(q.number("channels", 1, 1, 8, &err))}
	switch name := s.Format.Encoding; name {
	case "packets", "stream":
		s.Format = doors.Format{Encoding: "f32le", Rate: 48000, Channels: 1, Opus: name}
	case "":
		err = &spec.OptionError{Field: "encoding", Reason: "must be linear16, linear32, mulaw, alaw, opus or ogg-opus, or left out for Opus in Ogg or WebM"}
	}
	return s, err
}

func (q *Query) number(name string, usual, least, most float64, err *error) float64 {
	return doors.Number(name, q.values.Get(name), usual, least, most, err)
}

// command is a text message of a client.
type command struct {
	Type       string              `json:"type"`
	Keyterms   *[]string           `json:"keyterms"`
	Hints      *[]string           `json:"language_hints"`
	Thresholds map[string]*float64 `json:"thresholds"`
}

// parse reads a text message. err is for the client if that is a Configure.
func parse(data []byte) (c command, err error) {
	if json.Unmarshal(data, &c) != nil {
		err = errors.New("keyterms and language_hints must be lists of texts, thresholds an object of numbers")
	}
	return c, err
}

// Live is the door of GET /listen.
type Live struct {
	id, model string
	set       doors.Settings
	interim   bool    // send texts that may be revised
	started   bool    // send SpeechStarted
	endpoints bool    // report that speech has ended
	wait      float64 // seconds without a word before UtteranceEnd; 0 sends none
	begun     time.Time
	received  int64 // bytes
	turn      doors.Turn
	last      int     // the last utterance that has begun; −1 none
	finalize  int     // the utterance whose final text answers Finalize; −1 none
	lastWord  float64 // end of the last word, if UtteranceEnd is due after it
}

// NewLive returns the door of a connection with an id, and the terms of its
// session. An error is a *spec.OptionError.
func NewLive(values url.Values, id string) (*Live, doors.Settings, error) {
	q, err := ReadQuery(values)
	if err != nil {
		return nil, doors.Settings{}, err
	}
	l := &Live{
		id: id, model: values.Get("model"), interim: on(values, "interim_results"), started: on(values, "vad_events"),
		endpoints: values.Get("endpointing") != "false", begun: time.Now(), last: -1, finalize: -1,
	}
	l.set, err = q.settings()
	if l.endpoints && values.Get("endpointing") != "true" {
		l.set.Silence = max(doors.LeastPause, q.number("endpointing", 500, 0, 10000, &err)/1000)
	}
	l.wait = q.number("utterance_end_ms", 0, 1000, 5000, &err) / 1000
	return l, l.set, err
}

// Begin implements doors.Door.
func (l *Live) Begin() [][]byte { return nil }

// Closes reports whether a message closes a stream of Opus: CloseStream, or an
// empty binary message, which closes every stream of Live.
func Closes(text bool, data []byte) bool {
	var c command
	return !text && len(data) == 0 || text && json.Unmarshal(data, &c) == nil && c.Type == "CloseStream"
}

// Receive implements doors.Door.
func (l *Live) Receive(text bool, data []byte) (actions []doors.Action, replies [][]byte, err error) {
	if !text && len(data) > 0 {
		l.received += int64(len(data))
		return []doors.Action{doors.Audio(data)}, l.quiet(), nil
	}
	c := command{Type: "CloseStream"}
	var wrong error
	if text {
		c, wrong = parse(data)
	}
	switch c.Type {
	case "KeepAlive":
	case "Finalize":
		actions = []doors.Action{doors.Commit{}}
	case "CloseStream":
		actions = []doors.Action{doors.Finish{}}
	case "Configure":
		reply := doors.Object{"request_id": l.id}
		if c.Keyterms != nil {
			set := l.set
			set.Options.Hotwords = terms(*c.Keyterms)
			_, err := doors.Check(set.Options, names)
			if err = cmp.Or(wrong, err); err != nil {
				reply["code"], reply["description"] = "CONFIGURE_KEYTERM_LIMIT_EXCEEDED", err.Error()
				return nil, doors.Message("ConfigureFailure", reply), nil //nolint:nilerr // the client gets it, and the session continues
			}
			l.set, reply["keyterms"] = set, *c.Keyterms
			actions = []doors.Action{doors.Configure{Settings: set}}
		}
		replies = doors.Message("ConfigureSuccess", reply)
	default:
		replies = doors.Message("Error", doors.Object{"variant": "SchemaError", "description": "expected KeepAlive, Finalize, CloseStream or Configure", "message": spec.Shorten(string(data))})
	}
	return actions, replies, nil
}

// quiet returns UtteranceEnd if no word has come for wait seconds.
func (l *Live) quiet() [][]byte {
	end := l.lastWord
	if l.wait == 0 || end == 0 || l.last >= int(l.turn) || l.set.Format.Seconds(l.received)-end < l.wait {
		return nil
	}
	l.lastWord = 0
	return doors.Message("UtteranceEnd", doors.Object{"channel": []int{0, 1}, "last_word_end": end})
}

// Send implements doors.Door.
func (l *Live) Send(e spec.LiveEvent) [][]byte {
	switch {
	case e.Kind == spec.LiveSpeechStarted:
		if l.last = e.Utterance; l.started {
			return doors.Message("SpeechStarted", doors.Object{"channel": []int{0, 1}, "timestamp": e.Start})
		}
	case e.Kind == spec.LivePartial && l.interim && l.turn.Of(e):
		return l.results(e, doors.Sketch(e), false, false)
	case e.Kind == spec.LiveFinal && l.turn.Of(e):
		if n := len(e.Segments); n > 0 {
			l.lastWord = e.Segments[n-1].End
		}
		return l.results(e, e.Segments, true, e.Utterance == l.finalize)
	case e.Kind == spec.LiveCommitted:
		l.finalize = e.Utterance
		if e.Utterance < 0 && l.last < int(l.turn) {
			return l.results(e, nil, true, true)
		} else if e.Utterance < 0 { // its text has not come yet
			l.finalize = l.last
		}
	}
	return nil
}

// results returns the message with a text.
func (l *Live) results(e spec.LiveEvent, segments []spec.Segment, final, finalized bool) [][]byte {
	return doors.Message("Results", doors.Object{
		"channel_index": []int{0, 1}, "start": e.Start, "duration": max(0, e.End-e.Start), "is_final": final, "speech_final": final && l.endpoints,
		"from_finalize": finalized, "channel": doors.Object{"alternatives": []doors.Object{alternative(segments)}},
		"metadata": doors.Object{"request_id": l.id, "model_info": modelInfo(l.model), "model_uuid": modelID(l.model)},
	})
}

// End implements doors.Door.
func (l *Live) End(e doors.End) (messages [][]byte, code int, reason string) {
	if e.Reason != doors.Finished {
		return doors.Message("Error", doors.Object{"variant": "SessionEnded", "description": e.Text}), e.Reason.Code(), e.Text
	}
	return doors.Message("Metadata", metadata(l.id, l.model, l.begun, e.Seconds)), e.Reason.Code(), ""
}
