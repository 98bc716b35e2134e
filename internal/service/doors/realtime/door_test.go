package realtime

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// models accepts every name but one.
func models(name string, o *spec.Options, _ *spec.Extras) error {
	if name == "none" {
		return errors.New("model none does not exist")
	}
	o.EnableDiarize = new(strings.HasSuffix(name, "diarize"))
	return nil
}

func open(t testing.TB, session string) *Door {
	t.Helper()
	d, err := New("x", "", json.RawMessage(session), models, time.Hour)
	require.NoError(t, err)
	return d
}

// event is an event of the server with the fields that tests read.
type event struct {
	Type, Delta, Transcript, Speaker string
	ItemID                           string  `json:"item_id"`
	Previous                         *string `json:"previous_item_id"`
	AudioStart                       *int    `json:"audio_start_ms"`
	Error                            struct{ Type, Code, Param, Message, EventID string }
	Languages                        []struct{ Code string }
	Usage                            struct{ Seconds float64 }
	Session                          struct {
		Audio struct {
			Input struct {
				Transcription *transcription
				Detection     *detection `json:"turn_detection"`
				Format        format
			}
		}
	}
}

func parsed(t testing.TB, messages [][]byte) (list []event) {
	t.Helper()
	for _, m := range messages {
		var e event
		require.NoError(t, json.Unmarshal(m, &e), "%s", m)
		list = append(list, e)
	}
	return list
}

// kinds returns the types of events without their common beginnings.
func kinds(list []event) (out []string) {
	for _, e := range list {
		out = append(out, e.Type[strings.LastIndexByte(e.Type, '.')+1:])
	}
	return out
}

const manual = `{"type":"transcription","audio":{"input":{"turn_detection":null}}}`

// With turn detection each utterance is an item, whose events come in OpenAI's
// order.
func TestTurns(t *testing.T) {
	d := open(t, `{"audio":{"input":{"transcription":{"model":"gpt-4o-transcribe-diarize"}}}}`)
	list := parsed(t, d.Begin())
	for _, e := range []spec.LiveEvent{
		{Kind: spec.LiveSpeechStarted, Start: 0.2},
		{Kind: spec.LivePartial, Text: "he"},
		{Kind: spec.LivePartial, Text: "hello"},
		{Kind: spec.LiveSpeechStopped, Start: 0.2, End: 1.5},
		{Kind: spec.LiveSpeechStarted, Start: 2, Utterance: 1},
		{Kind: spec.LiveFinal, Text: "hello there", Language: "en", Segments: []spec.Segment{{Text: "hello there", Speaker: "SPEAKER_0"}}},
		{Kind: spec.LiveSpeechStopped, Utterance: 1, Start: 2, End: 3},
		{Kind: spec.LiveFinal, Utterance: 1},
	} {
		list = append(list, parsed(t, d.Send(e))...)
	}
	assert.Equal(t, []string{
		"created", "speech_started", "delta", "delta", "speech_stopped", "committed", "added", "speech_started",
		"delta", "segment", "completed", "done", "speech_stopped", "committed", "added", "completed", "done",
	}, kinds(list))
	assert.Equal(t, 0, *list[1].AudioStart)
	assert.Equal(t, "hello there", list[10].Transcript)
	assert.Equal(t, "SPEAKER_0", list[9].Speaker)
	assert.Equal(t, "en", list[10].Languages[0].Code)
	assert.Nil(t, list[5].Previous)
	assert.Equal(t, list[5].ItemID, *list[13].Previous)
	assert.Equal(t, list[1].ItemID, list[2].ItemID)
	assert.Empty(t, d.of)
}

// A commit of silence is an empty item, never an error, because many clients
// end at any error.
func TestEmptyCommit(t *testing.T) {
	for _, session := range []string{manual, "{}"} {
		d := open(t, session)
		actions, replies, err := d.Receive(true, []byte(`{"type":"input_audio_buffer.commit"}`))
		require.NoError(t, err)
		assert.Empty(t, replies)
		assert.Equal(t, []doors.Action{doors.Commit{}}, actions)
		list := parsed(t, d.Send(spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: -1, Start: 1}))
		assert.Equal(t, []string{"committed", "added", "completed", "done"}, kinds(list))
		assert.Empty(t, list[2].Transcript)
	}
	d := open(t, "{}") // turn detection has committed first
	for _, e := range []spec.LiveEvent{{Kind: spec.LiveSpeechStarted}, {Kind: spec.LiveSpeechStopped}, {Kind: spec.LiveFinal, Text: "a"}} {
		d.Send(e)
	}
	assert.Empty(t, d.Send(spec.LiveEvent{Kind: spec.LiveCommitted}))
}

// The deltas of an item, joined, are its transcript, in any order of partials,
// finals, commits and clears; each committed item is completed once, and no
// later event names it.
func TestDeltasArePrefixes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := open(t, rapid.SampledFrom([]string{manual, "{}"}).Draw(rt, "session"))
		joined, completed, committed := map[string]string{}, map[string]string{}, []string{}
		send := func(e spec.LiveEvent) {
			for _, e := range parsed(t, d.Send(e)) {
				switch kind := kinds([]event{e})[0]; kind {
				case "delta":
					require.NotContains(rt, completed, e.ItemID)
					joined[e.ItemID] += e.Delta
				case "committed":
					require.NotContains(rt, committed, e.ItemID)
					committed = append(committed, e.ItemID)
				case "completed":
					require.NotContains(rt, completed, e.ItemID)
					require.Contains(rt, committed, e.ItemID)
					require.Equal(rt, e.Transcript, joined[e.ItemID])
					completed[e.ItemID] = e.Transcript
				case "error":
					rt.Fatalf("an error: %+v", e)
				}
			}
		}
		type spoken struct {
			id   int
			text string
		}
		var waiting []*spoken // for their finals
		now, count := 0.0, 0
		var current *spoken
		stop := func() {
			send(spec.LiveEvent{Kind: spec.LiveSpeechStopped, Utterance: current.id, Start: now - 1, End: now})
			waiting, current = append(waiting, current), nil
		}
		final := func() {
			u := waiting[0]
			waiting = waiting[1:]
			send(spec.LiveEvent{Kind: spec.LiveFinal, Utterance: u.id, Text: u.text, Segments: []spec.Segment{{Text: u.text}}})
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now++
			switch step := rapid.SampledFrom([]string{"speak", "speak", "stop", "final", "commit", "clear"}).Draw(rt, "step"); {
			case step == "speak" && current == nil:
				current = &spoken{id: count}
				count++
				send(spec.LiveEvent{Kind: spec.LiveSpeechStarted, Utterance: current.id, Start: now})
			case step == "speak":
				current.text += rapid.SampledFrom([]string{"", "a", "word ", "再"}).Draw(rt, "more")
				send(spec.LiveEvent{Kind: spec.LivePartial, Utterance: current.id, Text: current.text})
			case step == "stop" && current != nil:
				stop()
			case step == "final" && len(waiting) > 0:
				final()
			case step == "commit":
				e := spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: -1, Start: now}
				if current != nil {
					e.Utterance = current.id
					stop()
				}
				send(e)
			case step == "clear":
				send(spec.LiveEvent{Kind: spec.LiveCleared, Utterance: -1, Start: now})
				current = nil
			}
		}
		if current != nil {
			stop()
		}
		for len(waiting) > 0 {
			final()
		}
		send(spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: -1, Start: now})
		for _, id := range committed {
			require.Contains(rt, completed, id)
		}
		require.Empty(rt, d.of)
	})
}

// Fields that are absent stay, null ones are cleared; the models of live clients
// have no turn detection.
func TestSessionUpdate(t *testing.T) {
	d := open(t, "")
	update := func(input string) event {
		t.Helper()
		actions, replies, err := d.Receive(true, fmt.Appendf(nil, `{"type":"session.update","session":{"type":"transcription","audio":{"input":%s}}}`, input))
		require.NoError(t, err)
		list := parsed(t, replies)
		require.Equal(t, "session.updated", list[0].Type, "%+v", list[0].Error)
		require.Len(t, actions, 1)
		assert.Equal(t, d.Settings(), actions[0].(doors.Configure).Settings)
		return list[0]
	}
	in := update(`{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"whisper-1","languages":["de","en"],"keywords":["Otograph"],"prompt":"p"}}`).Session.Audio.Input
	assert.Equal(t, "server_vad", in.Detection.Type)
	assert.Equal(t, doors.Format{Encoding: "s16le", Rate: 24000, Channels: 1}, d.Settings().Format)
	assert.Equal(t, []string{"de", "en"}, d.Settings().Extras.Languages)
	assert.Equal(t, []string{"Otograph"}, d.Settings().Options.Hotwords)
	assert.InDelta(t, 0.5, d.Settings().Silence, 1e-9)
	in = update(`{"format":{"type":"audio/pcmu"},"transcription":{"language":"fr"},"turn_detection":{"type":"server_vad","silence_duration_ms":200}}`).Session.Audio.Input
	assert.Equal(t, "whisper-1", in.Transcription.Model)
	assert.Equal(t, doors.Format{Encoding: "mulaw", Rate: 8000, Channels: 1}, d.Settings().Format)
	assert.Equal(t, "fr", *d.Settings().Options.ASRLanguage)
	assert.Empty(t, d.Settings().Extras.Languages)
	assert.InDelta(t, 0.2, d.Settings().Silence, 1e-9)
	assert.False(t, d.Settings().Manual)
	update(`{"transcription":{"languages":["de","en"]}}`)
	assert.Nil(t, d.Settings().Options.ASRLanguage)
	assert.Equal(t, []string{"de", "en"}, d.Settings().Extras.Languages)
	update(`{"transcription":{"language":null}}},"include":["otograph.sounds"],"otograph":{"x":{}`)
	assert.Empty(t, d.Settings().Extras.Languages)
	assert.True(t, *d.Settings().Options.EnableAudioEvents)
	update(`{}},"include":null,"otograph":{"x":{}`)
	assert.False(t, *d.Settings().Options.EnableAudioEvents)
	for delay, careful := range map[string]bool{"minimal": false, "medium": false, "high": true, "xhigh": true} {
		update(fmt.Sprintf(`{"transcription":{"delay":%q}}`, delay))
		assert.Equal(t, careful, d.Settings().Careful, delay)
	}
	for threshold, want := range map[float64]float64{0: 0, 0.4: 0.28, 0.75: 0.675, 1: 1} {
		update(fmt.Sprintf(`{"turn_detection":{"type":"server_vad","threshold":%v}}`, threshold))
		assert.InDelta(t, want, *d.Settings().Options.VADThreshold, 1e-9)
	}
	update(`{"turn_detection":{"type":"server_vad","threshold":0.5}}`)
	assert.Nil(t, d.Settings().Options.VADThreshold)
	update(`{"turn_detection":{"type":"semantic_vad","eagerness":"low"}}`)
	assert.InDelta(t, 1.5, d.Settings().Silence, 1e-9)
	update(`{"turn_detection":null}`)
	assert.True(t, d.Settings().Manual)
	for _, model := range []string{"gpt-live-transcribe", "gpt-realtime-whisper"} {
		in = update(fmt.Sprintf(`{"transcription":{"model":%q},"turn_detection":{"type":"server_vad"}}`, model)).Session.Audio.Input
		assert.Nil(t, in.Detection)
		assert.True(t, d.Settings().Manual)
	}
}

// Mistakes are events in OpenAI's form, change nothing, and end nothing.
func TestClientMistakesAreEvents(t *testing.T) {
	d := open(t, "{}")
	before := d.Settings()
	for message, want := range map[string]string{
		`{`: "invalid_json", `[]`: "invalid_json", `{"type":"nonsense"}`: "invalid_event", `{"type":"response.create"}`: "invalid_event",
		`{"type":"conversation.item.create"}`: "invalid_event", `{"type":"transcription_session.update"}`: "invalid_event",
		`{"type":"input_audio_buffer.append"}`:                                   "missing_required_parameter",
		`{"type":"input_audio_buffer.append","audio":"%"}`:                       "invalid_value",
		`{"type":"session.update"}`:                                              "invalid_value",
		`{"type":"session.update","session":{"include":"logprobs"}}`:             "invalid_value",
		`{"type":"session.update","session":{"type":"realtime"}}`:                "invalid_value",
		`{"type":"session.update","session":{"input_audio_format":"g711_ulaw"}}`: "invalid_value",
		`{"type":"session.update","session":{"turn_detection":null}}`:            "invalid_value",
		`{}`: "invalid_json",
		`{"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/opus"}}}}}`:                             "invalid_value",
		`{"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/pcm","rate":1}}}}}`:                     "invalid_value",
		`{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"none"}}}}}`:                           "model_not_found",
		`{"type":"session.update","session":{"audio":{"input":{"transcription":{"language":"klingonese"}}}}}`:                  "invalid_value",
		`{"type":"session.update","session":{"audio":{"input":{"transcription":{"keywords":[7]}}}}}`:                           "invalid_value",
		`{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"magic"}}}}}`:                          "invalid_value",
		`{"type":"session.update","session":{"audio":{"input":{"transcription":{"delay":"none"}}}}}`:                           "invalid_value",
		`{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"server_vad","threshold":2}}}}}`:       "invalid_value",
		`{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"server_vad","idle_timeout_ms":1}}}}}`: "invalid_value",
	} {
		actions, replies, err := d.Receive(true, []byte(message))
		require.NoError(t, err)
		assert.Empty(t, actions)
		list := parsed(t, replies)
		require.Len(t, list, 1, message)
		assert.Equal(t, want, list[0].Error.Code, message)
		assert.Equal(t, "invalid_request_error", list[0].Error.Type)
		assert.NotEmpty(t, list[0].Error.Message)
	}
	assert.Equal(t, before, d.Settings())
	_, replies, err := d.Receive(false, []byte("\x00"))
	require.NoError(t, err)
	assert.Equal(t, "invalid_json", parsed(t, replies)[0].Error.Code)
	actions, _, err := d.Receive(true, []byte(`{"type":"input_audio_buffer.append","audio":"`+base64.StdEncoding.EncodeToString([]byte("sound"))+`"}`))
	require.NoError(t, err)
	assert.Equal(t, []doors.Action{doors.Audio("sound")}, actions)
}

// After a silence of the client's timeout, an item without text is committed,
// once until somebody speaks.
func TestIdleTimeout(t *testing.T) {
	d := open(t, `{"audio":{"input":{"format":{"type":"audio/pcmu"},"turn_detection":{"type":"server_vad","idle_timeout_ms":5000}}}}`)
	second := fmt.Sprintf(`{"type":"input_audio_buffer.append","audio":%q}`, base64.StdEncoding.EncodeToString(make([]byte, 8000)))
	listen := func(seconds int) (kinds []string) {
		for range seconds {
			_, replies, err := d.Receive(true, []byte(second))
			require.NoError(t, err)
			for _, e := range parsed(t, replies) {
				kinds = append(kinds, e.Type)
			}
		}
		return kinds
	}
	timeout := []string{"input_audio_buffer.timeout_triggered", "input_audio_buffer.committed", "conversation.item.added", "conversation.item.input_audio_transcription.completed", "conversation.item.done"}
	assert.Empty(t, listen(4))
	assert.Equal(t, timeout, listen(1))
	assert.Empty(t, listen(20), "once")
	d.Send(spec.LiveEvent{Kind: spec.LiveSpeechStarted, Start: 21})
	assert.Empty(t, listen(10), "somebody speaks")
	d.Send(spec.LiveEvent{Kind: spec.LiveSpeechStopped, Start: 21, End: 34})
	d.Send(spec.LiveEvent{Kind: spec.LiveFinal, Start: 21, End: 34, Text: "a"})
	assert.Empty(t, listen(3))
	assert.Equal(t, timeout, listen(1), "5 s after the end")
}

// Only an end that the client or its account causes comes with an error.
func TestErrorsAtASessionsEnd(t *testing.T) {
	for reason, want := range map[doors.Reason]string{
		doors.Finished: "", doors.Gone: "", doors.Draining: "", doors.Fault: "", doors.Full: "", doors.Idle: "", doors.Slow: "",
		doors.Expired: "session_expired", doors.Unpaid: "insufficient_quota", doors.Limited: "rate_limit_exceeded", doors.Invalid: "invalid_value", doors.Canceled: "invalid_value",
	} {
		d := open(t, "{}")
		messages, code, text := d.End(doors.End{Reason: reason, Text: "why"})
		assert.Equal(t, reason.Code(), code)
		assert.Equal(t, "why", text)
		var got string
		if list := parsed(t, messages); len(list) > 0 {
			got = list[0].Error.Code
		}
		assert.Equal(t, want, got, reason)
	}
}

func FuzzReceive(f *testing.F) {
	for _, seed := range []string{`{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"m"}}}}}`, `{"type":"input_audio_buffer.append","audio":"AAAA"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := open(t, "{}")
		actions, replies, err := d.Receive(true, data)
		require.NoError(t, err)
		parsed(t, replies)
		if !slices.ContainsFunc(actions, func(a doors.Action) bool { _, ok := a.(doors.Configure); return ok }) {
			return
		}
		for range 2 {
			parsed(t, d.Send(spec.LiveEvent{Kind: spec.LiveSpeechStarted}))
		}
	})
}

// Each item's usage is the length of its sound: the sound of a commit after a
// turn begins at the turn's end.
func TestUsageOfItems(t *testing.T) {
	d := open(t, `{"type":"transcription","audio":{"input":{"transcription":{"model":"a"},"turn_detection":{"type":"server_vad"}}}}`)
	var usage []float64
	for _, e := range []spec.LiveEvent{
		{Kind: spec.LiveSpeechStarted, Start: 10},
		{Kind: spec.LiveSpeechStopped, Start: 10, End: 12.5},
		{Kind: spec.LiveFinal, Start: 10, End: 12.5, Text: "a"},
		{Kind: spec.LiveCommitted, Start: 14, Utterance: -1},
	} {
		for _, got := range parsed(t, d.Send(e)) {
			if strings.HasSuffix(got.Type, "completed") {
				usage = append(usage, got.Usage.Seconds)
			}
		}
	}
	assert.Equal(t, []float64{2.5, 1.5}, usage)
}

// A client secret has a fixed callback: its holder cannot send results
// elsewhere.
func TestCallbackOfClientSecret(t *testing.T) {
	update := func(terms string) string {
		return fmt.Sprintf(`{"type":"session.update","session":{"otograph":%s}}`, terms)
	}
	for session, refused := range map[string]bool{"": false, `{"otograph":{"callback_url":"https://mine"}}`: true} {
		d, err := New("id", "", json.RawMessage(session), models, time.Hour)
		require.NoError(t, err)
		for _, terms := range []string{`{"callback_url":"https://other"}`, `{"callback_url":"https://mine","callback_secret":"s"}`} {
			before := d.Terms()
			_, replies, err := d.Receive(true, []byte(update(terms)))
			require.NoError(t, err)
			e := parsed(t, replies)[0]
			if assert.Equal(t, refused, e.Type == "error", terms); refused {
				assert.Equal(t, "session.otograph.callback_url", e.Error.Param)
				assert.Equal(t, before, d.Terms())
			}
		}
		_, _, err = d.Receive(true, []byte(update(`{"store":true}`)))
		require.NoError(t, err)
		want := Terms{Store: true}
		if refused {
			want.CallbackURL = "https://mine"
		}
		assert.Equal(t, want, d.Terms())
	}
}
