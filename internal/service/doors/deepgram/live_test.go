package deepgram

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/test/doortest"
	"github.com/otograph/otograph/spec"
)

func query(t testing.TB, text string) url.Values {
	values, err := url.ParseQuery("encoding=linear16&sample_rate=16000&" + text)
	require.NoError(t, err)
	return values
}

func live(t testing.TB, text string) (*Live, doors.Settings) {
	l, set, err := NewLive(query(t, text), "id")
	require.NoError(t, err)
	return l, set
}

func TestLiveSettings(t *testing.T) {
	_, set := live(t, "model=nova-3&language=de&diarize_model=latest&keyterm=Otograph&keyterm=Flux&keywords=snuffleupagus:5&endpointing=25&channels=2&mip_opt_out=true&numerals=true")
	assert.Equal(t, doors.Format{Encoding: "s16le", Rate: 16000, Channels: 2}, set.Format)
	assert.Equal(t, []any{"de", true, false, true, 0.3}, []any{*set.Options.ASRLanguage, *set.Options.EnableDiarize, *set.Options.EnableAudioEvents, set.Revisable, set.Silence})
	assert.Equal(t, []string{"Otograph", "Flux", "snuffleupagus"}, set.Options.Hotwords)
	_, set = live(t, "language=multi&language_hint=en&language_hint=fr-CA&model=otograph-optimized&endpointing=1200")
	assert.Nil(t, set.Options.ASRLanguage)
	assert.Equal(t, []string{"en", "fr"}, set.Extras.Languages)
	assert.Equal(t, []any{true, 1.2}, []any{*set.Options.Optimize, set.Silence})
	_, set = live(t, "model=ggml-small&endpointing=false")
	assert.Equal(t, []any{"ggml-small", 0.0}, []any{set.Extras.Model, set.Silence})
	_, set, err := NewLive(url.Values{"encoding": {"mulaw"}}, "id") // the rate of telephones
	require.NoError(t, err)
	assert.Equal(t, doors.Format{Encoding: "mulaw", Rate: 8000, Channels: 1}, set.Format)
	for encoding, packing := range map[string]string{"opus": "packets", "ogg-opus": "stream", "": "stream"} {
		_, set, err := NewLive(url.Values{"encoding": {encoding}, "sample_rate": {"16000"}}, "id")
		require.NoError(t, err)
		assert.Equal(t, doors.Format{Encoding: "f32le", Rate: 48000, Channels: 1, Opus: packing}, set.Format)
	}
	for text, want := range map[string]string{
		"encoding=flac": "", "multichannel=true": "multichannel: ", "redact=pci": "redact: ", "endpointing=soon": "endpointing: must be a number", "utterance_end_ms=10": "utterance_end_ms: ",
		"channels=0": "channels: ", "language=klingon": "language: ",
	} {
		values := query(t, text)
		if text == "encoding=flac" {
			values.Set("encoding", "flac")
			want = "encoding: must be linear16"
		}
		_, _, err := NewLive(values, "id")
		require.ErrorAs(t, err, new(*spec.OptionError), text)
		assert.Contains(t, err.Error(), want)
	}
}

// TestCloses checks which messages end the sound.
func TestCloses(t *testing.T) {
	assert.True(t, Closes(false, nil))
	assert.True(t, Closes(true, []byte(`{"type":"CloseStream"}`)))
	for _, text := range []string{"", "{", `{"type":"Finalize"}`} {
		assert.False(t, Closes(true, []byte(text)), text)
	}
	assert.False(t, Closes(false, []byte(`{"type":"CloseStream"}`)), "sound")
	for encoding, want := range map[string]doors.Action{"opus": doors.Finish{}, "linear16": doors.Audio(nil)} {
		f, _, err := NewFlux(url.Values{"encoding": {encoding}, "model": {"flux-general-en"}}, "id")
		require.NoError(t, err)
		actions, _, err := f.Receive(false, nil)
		require.NoError(t, err)
		assert.Equal(t, []doors.Action{want}, actions, encoding)
	}
}

// TestLiveReceive checks each message of a client.
func TestLiveReceive(t *testing.T) {
	for text, want := range map[string]struct {
		action  doors.Action
		replies []doortest.Message
	}{
		`{"type":"KeepAlive"}`:   {},
		`{"type":"Finalize"}`:    {action: doors.Commit{}},
		`{"type":"CloseStream"}`: {action: doors.Finish{}},
		`{"type":"Configure"}`:   {replies: []doortest.Message{{"type": "ConfigureSuccess", "request_id": "id"}}},
		`{"type":"Configure","features":{"numerals":true},"keyterms":null}`: {replies: []doortest.Message{{"type": "ConfigureSuccess", "request_id": "id"}}},
		`{"type":"Configure","keyterms":["` + strings.Repeat("x", 65) + `"]}`: {replies: []doortest.Message{{
			"type": "ConfigureFailure", "request_id": "id", "code": "CONFIGURE_KEYTERM_LIMIT_EXCEEDED", "description": "keyterm: entry 0 has 65 characters, at most 64 are allowed",
		}}},
		`{"type":"Configure","keyterms":"new"}`: {replies: []doortest.Message{{
			"type": "ConfigureFailure", "request_id": "id", "code": "CONFIGURE_KEYTERM_LIMIT_EXCEEDED", "description": "keyterms and language_hints must be lists of texts, thresholds an object of numbers",
		}}},
		`{"type":"Speak"}`: {replies: []doortest.Message{{"type": "Error", "variant": "SchemaError", "description": "expected KeepAlive, Finalize, CloseStream or Configure", "message": `{"type":"Speak"}`}}},
		`nonsense`:         {replies: []doortest.Message{{"type": "Error", "variant": "SchemaError", "description": "expected KeepAlive, Finalize, CloseStream or Configure", "message": `nonsense`}}},
	} {
		l, _ := live(t, "")
		actions, replies, err := l.Receive(true, []byte(text))
		require.NoError(t, err)
		assert.Equal(t, want.replies, doortest.Read(t, replies), text)
		if want.action == nil {
			assert.Empty(t, actions, text)
		} else {
			assert.Equal(t, []doors.Action{want.action}, actions, text)
		}
	}
	l, _ := live(t, "keyterm=old")
	actions, replies, _ := l.Receive(true, []byte(`{"type":"Configure","keyterms":["new"]}`))
	assert.Equal(t, []string{"new"}, actions[0].(doors.Configure).Options.Hotwords)
	assert.Equal(t, []any{"new"}, doortest.Read(t, replies)[0]["keyterms"])
	actions, _, _ = l.Receive(false, []byte{1, 2})
	assert.Equal(t, []doors.Action{doors.Audio{1, 2}}, actions)
	actions, _, _ = l.Receive(false, nil)
	assert.Equal(t, []doors.Action{doors.Finish{}}, actions)
}

var sentences = []spec.Segment{{Start: 0.5, End: 2, Text: "Good day.", Speaker: "SPEAKER_1", Words: []spec.Word{{Word: " Good", Start: 0.5, End: 1, Probability: 0.5}, {Word: " day.", Start: 1, End: 2, Probability: 1}}}}

// TestLiveSend checks the message for each event.
func TestLiveSend(t *testing.T) {
	final := spec.LiveEvent{Kind: spec.LiveFinal, Start: 0.5, End: 2, Text: "Good day.", Segments: sentences}
	l, _ := live(t, "interim_results=true&vad_events=true&utterance_end_ms=1000&model=nova-3")
	send := func(e spec.LiveEvent) doortest.Message {
		list := doortest.Read(t, l.Send(e))
		require.Len(t, list, 1)
		return list[0]
	}
	hear := func(seconds int) []doortest.Message {
		_, replies, err := l.Receive(false, make([]byte, seconds*32000))
		require.NoError(t, err)
		return doortest.Read(t, replies)
	}
	assert.Empty(t, hear(1))
	assert.Equal(t, doortest.Message{"type": "SpeechStarted", "channel": []any{0.0, 1.0}, "timestamp": 0.5}, send(spec.LiveEvent{Kind: spec.LiveSpeechStarted, Start: 0.5}))
	m := send(spec.LiveEvent{Kind: spec.LivePartial, Start: 0.5, End: 1.5, Text: "Good"})
	assert.Equal(t, []any{"Results", false, false, false, 0.5, 1.0}, []any{m["type"], m["is_final"], m["speech_final"], m["from_finalize"], m["start"], m["duration"]})
	best := m["channel"].(map[string]any)["alternatives"].([]any)[0].(map[string]any)
	assert.Equal(t, map[string]any{"word": "good", "punctuated_word": "Good", "start": 0.5, "end": 1.5, "confidence": 0.0}, best["words"].([]any)[0])
	assert.Equal(t, "id", m["metadata"].(map[string]any)["request_id"])
	assert.Empty(t, l.Send(spec.LiveEvent{Kind: spec.LiveSpeechStopped, End: 2}))
	assert.Empty(t, hear(3), "the text of the utterance has not come")
	m = send(final)
	assert.Equal(t, []any{true, true, false}, []any{m["is_final"], m["speech_final"], m["from_finalize"]})
	best = m["channel"].(map[string]any)["alternatives"].([]any)[0].(map[string]any)
	assert.Equal(t, []any{"Good day.", 0.75}, []any{best["transcript"], best["confidence"]})
	assert.Equal(t, map[string]any{"word": "day", "punctuated_word": "day.", "start": 1.0, "end": 2.0, "confidence": 1.0, "speaker": 1.0}, best["words"].([]any)[1])
	assert.Equal(t, []doortest.Message{{"type": "UtteranceEnd", "channel": []any{0.0, 1.0}, "last_word_end": 2.0}}, hear(1))
	assert.Empty(t, hear(10), "once")
	assert.Equal(t, true, send(spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: -1})["from_finalize"], "Finalize is answered without speech, too")
	assert.Empty(t, l.Send(spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: 1}))
	final.Utterance = 1
	assert.Equal(t, true, send(final)["from_finalize"])
	assert.Empty(t, l.Send(spec.LiveEvent{Kind: spec.LiveSound}))
	send(spec.LiveEvent{Kind: spec.LiveSpeechStarted, Utterance: 2})
	assert.Empty(t, l.Send(spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: -1}))
	final.Utterance = 2
	assert.Equal(t, true, send(final)["from_finalize"], "Finalize after the end of speech waits for its text")

	l, _ = live(t, "endpointing=false")
	assert.Empty(t, l.Send(spec.LiveEvent{Kind: spec.LiveSpeechStarted}))
	assert.Empty(t, l.Send(spec.LiveEvent{Kind: spec.LivePartial, Text: "Good"}))
	final.Utterance = 0
	m = send(final)
	assert.Equal(t, []any{true, false}, []any{m["is_final"], m["speech_final"]})
}

func TestLiveEnd(t *testing.T) {
	l, _ := live(t, "model=nova-3")
	assert.Empty(t, l.Begin())
	list, code, reason := l.End(doors.End{Seconds: 61.5})
	m := doortest.Read(t, list)[0]
	assert.Equal(t, []any{1000, "", "Metadata", "id", 61.5, 1.0}, []any{code, reason, m["type"], m["request_id"], m["duration"], m["channels"]})
	list, code, reason = l.End(doors.End{Reason: doors.Fault, Text: "why"})
	assert.Equal(t, doortest.Message{"type": "Error", "variant": "SessionEnded", "description": "why"}, doortest.Read(t, list)[0])
	assert.Equal(t, []any{1011, "why"}, []any{code, reason})
}

// TestLiveOrder checks that interim results come before the final result of
// their utterance and after the final result of the utterance before it.
func TestLiveOrder(t *testing.T) {
	for seed := range uint64(200) {
		l, _ := live(t, "interim_results=true")
		final := 0
		for _, e := range doortest.Events(rand.New(rand.NewPCG(seed, 1)), 6, false) {
			for _, m := range doortest.Read(t, l.Send(e)) {
				require.InDelta(t, 4*final, m["start"], 1e-9)
				if m["is_final"] == true {
					require.Equal(t, e.Text, m["channel"].(map[string]any)["alternatives"].([]any)[0].(map[string]any)["transcript"])
					final++
				}
			}
		}
		require.Equal(t, 6, final)
	}
}

func FuzzReceive(f *testing.F) {
	for _, text := range []string{`{"type":"Configure","keyterms":["a"],"thresholds":{"eot_threshold":0.9},"language_hints":["en"]}`, `{"type":"ForceEndTurn"}`, `[]`, ``} {
		f.Add([]byte(text), "model=flux-general-multi")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		values, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		if l, _, err := NewLive(values, "id"); err == nil {
			_, replies, err := l.Receive(true, data)
			assert.NoError(t, err)
			doortest.Read(t, replies)
		}
		if f, _, err := NewFlux(values, "id"); err == nil {
			actions, replies, err := f.Receive(true, data)
			assert.True(t, err == nil || len(actions) == 0)
			doortest.Read(t, replies)
		}
	})
}
