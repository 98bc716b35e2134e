package assemblyai

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/test/doortest"
	"github.com/otograph/otograph/spec"
)

func open(t testing.TB, values url.Values) (*Live, doors.Settings) {
	values.Set("sample_rate", "16000")
	l, set, err := New(values, "id", time.Hour)
	require.NoError(t, err)
	return l, set
}

func TestParametersBecomeSettings(t *testing.T) {
	_, set := open(t, url.Values{
		"encoding": {"pcm_mulaw"}, "speech_model": {"universal-streaming-multilingual"}, "keyterms_prompt": {`["Otograph", "Flux"]`}, "language_codes": {`["EN","de"]`},
		"min_turn_silence": {"100"}, "speaker_labels": {"True"}, "format_turns": {"true"}, "redact_pii": {"False"}, "inactivity_timeout": {"60"},
	})
	assert.Equal(t, doors.Format{Encoding: "mulaw", Rate: 16000, Channels: 1}, set.Format)
	assert.Equal(t, [][]string{{"Otograph", "Flux"}, {"en", "de"}}, [][]string{set.Options.Hotwords, set.Extras.Languages})
	assert.Equal(t, []any{true, 0.3, true}, []any{*set.Options.EnableDiarize, set.Silence, set.Revisable})
	_, set = open(t, url.Values{"speech_model": {"universal-streaming-english"}, "min_end_of_turn_silence_when_confident": {"700"}})
	assert.Equal(t, []any{"en", 0.7}, []any{*set.Options.ASRLanguage, set.Silence})
	for want, values := range map[string]url.Values{
		"encoding: must be pcm_s16le or pcm_mulaw":  {"encoding": {"opus"}},
		"sample_rate: must be a number from 8000":   {"sample_rate": {"1"}},
		"redact_pii: is not served":                 {"redact_pii": {"true"}},
		"keyterms_prompt: must be a JSON array":     {"keyterms_prompt": {"Otograph"}},
		"min_turn_silence: must be a number from 0": {"min_turn_silence": {"-1"}},
		"language_code: ":                           {"language_code": {"klingon"}},
		"language_codes: must be codes":             {"language_codes": {`["en","klingon"]`}},
	} {
		_, _, err := New(values, "id", time.Hour)
		require.ErrorAs(t, err, new(*spec.OptionError), want)
		assert.ErrorContains(t, err, want)
	}
}

// TestReceive checks each message of a client.
func TestReceive(t *testing.T) {
	l, _ := open(t, url.Values{"keyterms_prompt": {`["old"]`}})
	begin := doortest.Read(t, l.Begin())[0]
	assert.Equal(t, []any{"Begin", "id"}, []any{begin["type"], begin["id"]})
	assert.Greater(t, begin["expires_at"], float64(time.Now().Unix()))
	for text, want := range map[string][]doors.Action{
		`{"type":"KeepAlive"}`: nil, `{"type":"ForceEndpoint"}`: {doors.Commit{}}, `{"type": "Terminate"}`: {doors.Finish{}},
	} {
		actions, replies, err := l.Receive(true, []byte(text))
		require.NoError(t, err)
		assert.Empty(t, replies)
		assert.Equal(t, want, actions, text)
	}
	actions, _, err := l.Receive(true, []byte(`{"type":"UpdateConfiguration","keyterms_prompt":["new"],"min_turn_silence":900,"language_code":"de"}`))
	require.NoError(t, err)
	set := actions[0].(doors.Configure)
	assert.Equal(t, []any{"new", 0.9, "de"}, []any{set.Options.Hotwords[0], set.Silence, *set.Options.ASRLanguage})
	actions, _, err = l.Receive(true, []byte(`{"type":"UpdateConfiguration","keyterms_prompt":null,"min_turn_silence":null,"language_code":null}`))
	require.NoError(t, err)
	assert.Equal(t, []doors.Action{set}, actions)
	_, _, err = l.Receive(true, []byte(`{"type":"UpdateConfiguration","language_codes":["EN","de"]}`))
	require.NoError(t, err)
	assert.Nil(t, l.set.Options.ASRLanguage)
	assert.Equal(t, []string{"en", "de"}, l.set.Extras.Languages)
	_, _, err = l.Receive(true, []byte(`{"type":"UpdateConfiguration","language_code":"multi"}`))
	require.NoError(t, err)
	assert.Empty(t, l.set.Extras.Languages)
	for text, want := range map[string]string{`{"type":"Speak"}`: `not "Speak"`, `nonsense`: `type: expected`, `{"type":"UpdateConfiguration","min_turn_silence":"soon"}`: "min_turn_silence: "} {
		_, _, err := l.Receive(true, []byte(text))
		assert.ErrorContains(t, err, want)
	}
	actions, _, _ = l.Receive(false, []byte{1})
	assert.Equal(t, []doors.Action{doors.Audio{1}}, actions)
}

// TestSend checks the message for each event.
func TestSend(t *testing.T) {
	l, _ := open(t, url.Values{})
	assert.Equal(t, []doortest.Message{{"type": "SpeechStarted", "timestamp": 500.0}}, doortest.Read(t, l.Send(spec.LiveEvent{Kind: spec.LiveSpeechStarted, Start: 0.5})))
	assert.Equal(t, []doortest.Message{{
		"type": "Turn", "turn_order": 0.0, "turn_is_formatted": true, "end_of_turn": false, "transcript": "Good", "end_of_turn_confidence": 0.0,
		"words": []any{map[string]any{"text": "Good", "start": 500.0, "end": 1500.0, "confidence": 0.0, "word_is_final": false}},
	}}, doortest.Read(t, l.Send(spec.LiveEvent{Kind: spec.LivePartial, Start: 0.5, End: 1.5, Text: "Good"})))
	seg := spec.Segment{Start: 0.5, End: 2, Text: "Good.", Speaker: "SPEAKER_1", Words: []spec.Word{{Word: " Good.", Start: 0.5, End: 2, Probability: 0.5}}}
	assert.Equal(t, []doortest.Message{{
		"type": "Turn", "turn_order": 0.0, "turn_is_formatted": true, "end_of_turn": true, "transcript": "Good.", "utterance": "Good.", "end_of_turn_confidence": 1.0, "speaker_label": "B",
		"words": []any{map[string]any{"text": "Good.", "start": 500.0, "end": 2000.0, "confidence": 0.5, "word_is_final": true, "speaker": "B"}},
	}}, doortest.Read(t, l.Send(spec.LiveEvent{Kind: spec.LiveFinal, Text: "Good.", Segments: []spec.Segment{seg}})))
	for _, e := range []spec.LiveEvent{{Kind: spec.LiveSpeechStopped}, {Kind: spec.LivePartial}, {Kind: spec.LiveFinal, Utterance: 1}, {Kind: spec.LiveCommitted}, {Kind: spec.LiveSound}} {
		assert.Empty(t, l.Send(e), "an utterance without text is no turn")
	}
}

func TestMessagesAtTheEnd(t *testing.T) {
	l, _ := open(t, url.Values{})
	list, code, _ := l.End(doors.End{Seconds: 61.5, Lasted: 70 * time.Second})
	assert.Equal(t, []doortest.Message{{"type": "Termination", "audio_duration_seconds": 62.0, "session_duration_seconds": 70.0}}, doortest.Read(t, list))
	assert.Equal(t, 1000, code)
	for reason, want := range map[doors.Reason]int{doors.Invalid: 4101, doors.Idle: 4031, doors.Expired: 4008, doors.Unpaid: 4002, doors.Limited: 4102, doors.Fault: 1011, doors.Full: 1013, doors.Draining: 1012} {
		list, code, text := l.End(doors.End{Reason: reason, Text: "why"})
		assert.Equal(t, []doortest.Message{{"type": "Error", "error_code": float64(want), "error": "why"}}, doortest.Read(t, list))
		assert.Equal(t, []any{want, "why"}, []any{code, text})
	}
}

// TestTurnHasItsOwnWords checks that a turn has its own words alone and ends
// once.
func TestTurnHasItsOwnWords(t *testing.T) {
	for seed := range uint64(200) {
		l, _ := open(t, url.Values{})
		turn, texts := 0, 0
		for _, e := range doortest.Events(rand.New(rand.NewPCG(seed, 3)), 6, false) {
			if e.Kind == spec.LiveFinal && e.Text != "" {
				texts++
			}
			for _, m := range doortest.Read(t, l.Send(e)) {
				if m["type"] != "Turn" {
					continue
				}
				require.InDelta(t, turn, m["turn_order"], 0)
				require.Equal(t, e.Text, m["transcript"])
				if m["end_of_turn"] == true {
					turn++
				}
			}
		}
		require.Equal(t, texts, turn)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"type":"UpdateConfiguration","keyterms_prompt":["a"],"min_turn_silence":1}`), "encoding=pcm_mulaw&keyterms_prompt=[]")
	f.Add([]byte(`[]`), strings.Repeat("language_code=en&", 2))
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if values, err := url.ParseQuery(text); err == nil {
			if l, _, err := New(values, "id", time.Hour); err == nil {
				_, _, _ = l.Receive(true, data)
			}
		}
	})
}
