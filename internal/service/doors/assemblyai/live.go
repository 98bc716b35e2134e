// Package assemblyai speaks AssemblyAI's interface for live sound (v3), as its
// clients send and expect it. All of it is an addition to the specification.
package assemblyai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// Live is the door of GET /v3/ws. A turn is an utterance with some text.
type Live struct {
	id      string
	set     doors.Settings
	longest time.Duration
	order   int // of the next turn
	turn    doors.Turn
	shown   bool // some of the turn's text was sent
}

// New returns the door of a connection with an id, and the terms of its session,
// which ends after the longest time. An error is a *spec.OptionError.
func New(values url.Values, id string, longest time.Duration) (*Live, doors.Settings, error) {
	diarize, no, level := strings.EqualFold(values.Get("speaker_labels"), "true"), false, spec.TimestampWord
	l := &Live{id: id, longest: longest, set: doors.Settings{Revisable: true}}
	l.set.Options = spec.Options{EnableDiarize: &diarize, EnableAudioEvents: &no, TimestampLevel: &level}
	encoding, ok := map[string]string{"": "s16le", "pcm_s16le": "s16le", "pcm_mulaw": "mulaw"}[values.Get("encoding")]
	if !ok {
		return nil, l.set, wrong("encoding", "must be pcm_s16le or pcm_mulaw")
	}
	for _, name := range []string{"llm_gateway", "redact_pii", "webhook_url"} {
		if text := values.Get(name); text != "" && !strings.EqualFold(text, "false") { // Python writes False
			return nil, l.set, wrong(name, "is not served here; leave it out")
		}
	}
	if values.Get("speech_model") == "universal-streaming-english" {
		values.Set("language_code", "en")
	}
	err := l.change(values.Get)
	l.set.Format = doors.Format{Encoding: encoding, Rate: int(doors.Number("sample_rate", values.Get("sample_rate"), doors.UsualRate(encoding), 8000, 96000, &err)), Channels: 1}
	return l, l.set, err
}

func wrong(name, reason string) error { return &spec.OptionError{Field: name, Reason: reason} }

// change sets the terms that may change: get returns a parameter's text, or "".
// Lists are JSON.
func (l *Live) change(get func(name string) string) error {
	set := l.set
	if get("language_code")+get("language_codes") != "" { // a new choice, also multi, replaces the last one
		set.Options.ASRLanguage, set.Extras.Languages = nil, nil
	}
	for name, dst := range map[string]*[]string{"keyterms_prompt": &set.Options.Hotwords, "language_codes": &set.Extras.Languages} {
		var list []string
		if text := get(name); text == "" {
			continue
		} else if json.Unmarshal([]byte(text), &list) != nil {
			return wrong(name, "must be a JSON array of texts")
		}
		*dst = list
	}
	for i, name := range set.Extras.Languages {
		code, ok := spec.NormalizeLanguage(name)
		if !ok {
			return wrong("language_codes", "must be codes of languages, not "+spec.Shorten(name))
		}
		set.Extras.Languages[i] = code
	}
	if text := get("language_code"); text != "" && text != "multi" {
		set.Options.ASRLanguage = &text
	}
	var err error
	if text := cmp.Or(get("min_turn_silence"), get("min_end_of_turn_silence_when_confident")); text != "" {
		set.Silence = max(doors.LeastPause, doors.Number("min_turn_silence", text, 0, 0, 10000, &err)/1000)
	}
	if err == nil {
		_, err = doors.Check(set.Options, map[string]string{"hotwords": "keyterms_prompt", "asr_language": "language_code"})
	}
	if err == nil {
		l.set = set
	}
	return err
}

// Begin implements doors.Door.
func (l *Live) Begin() [][]byte {
	return doors.Message("Begin", doors.Object{"id": l.id, "expires_at": time.Now().Add(l.longest).Unix()})
}

// Receive implements doors.Door.
func (l *Live) Receive(text bool, data []byte) (actions []doors.Action, replies [][]byte, err error) {
	if !text {
		return []doors.Action{doors.Audio(data)}, nil, nil
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields)
	get := func(name string) string { return strings.Trim(strings.TrimPrefix(string(fields[name]), "null"), `"`) }
	switch kind := get("type"); kind {
	case "KeepAlive":
	case "ForceEndpoint":
		actions = []doors.Action{doors.Commit{}}
	case "Terminate":
		actions = []doors.Action{doors.Finish{}}
	case "UpdateConfiguration":
		err = l.change(get)
		actions = []doors.Action{doors.Configure{Settings: l.set}}
	default:
		err = fmt.Errorf("type: expected Terminate, ForceEndpoint, UpdateConfiguration or KeepAlive, not %q", spec.Shorten(kind))
	}
	return actions, nil, err
}

// Send implements doors.Door.
func (l *Live) Send(e spec.LiveEvent) [][]byte {
	switch {
	case e.Kind == spec.LiveSpeechStarted:
		return doors.Message("SpeechStarted", doors.Object{"timestamp": milliseconds(e.Start)})
	case e.Kind == spec.LivePartial && l.turn.Of(e) && e.Text != "":
		l.shown = true
		return l.text(e.Text, doors.Sketch(e), false)
	case e.Kind == spec.LiveFinal && l.turn.Of(e) && (l.shown || e.Text != ""):
		l.shown = false
		return l.text(e.Text, e.Segments, true)
	}
	return nil
}

func milliseconds(t float64) int { return int(math.Round(1000 * t)) }

// text returns the message with the text of a turn. The service decides whether
// a turn has ended, so that the probability is 0 or 1.
func (l *Live) text(text string, segments []spec.Segment, end bool) [][]byte {
	words := []doors.Object{}
	o := doors.Object{"turn_order": l.order, "turn_is_formatted": true, "end_of_turn": end, "transcript": text, "end_of_turn_confidence": 0}
	if end {
		o["end_of_turn_confidence"], o["utterance"] = 1, text
		l.order++
	}
	for _, seg := range segments {
		n, known := doors.Speaker(seg.Speaker)
		for _, w := range doors.Words(seg) {
			word := doors.Object{"text": w.Word, "start": milliseconds(w.Start), "end": milliseconds(w.End), "confidence": w.Probability, "word_is_final": end}
			if known {
				word["speaker"], o["speaker_label"] = string(rune('A'+n)), string(rune('A'+n))
			}
			words = append(words, word)
		}
	}
	o["words"] = words
	return doors.Message("Turn", o)
}

// closeCodes are the reasons with a close code of AssemblyAI's own.
var closeCodes = map[doors.Reason]int{doors.Invalid: 4101, doors.Idle: 4031, doors.Expired: 4008, doors.Unpaid: 4002, doors.Limited: 4102}

// End implements doors.Door.
func (l *Live) End(e doors.End) (messages [][]byte, code int, reason string) {
	if e.Reason == doors.Finished {
		return doors.Message("Termination", doors.Object{"audio_duration_seconds": int(math.Round(e.Seconds)), "session_duration_seconds": int(math.Round(e.Lasted.Seconds()))}), e.Reason.Code(), ""
	}
	code = cmp.Or(closeCodes[e.Reason], e.Reason.Code())
	return doors.Message("Error", doors.Object{"error_code": code, "error": e.Text}), code, e.Text
}
