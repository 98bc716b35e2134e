package deepgram

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/test/doortest"
	"github.com/otograph/otograph/spec"
)

func flux(t testing.TB, text string) (*Flux, doors.Settings) {
	f, set, err := NewFlux(query(t, text), "id")
	require.NoError(t, err)
	return f, set
}

func TestFluxThresholds(t *testing.T) {
	for text, want := range map[string]float64{"": 0.5, "eot_threshold=0.9": 0.9 / 1.4, "eot_threshold=1.0": 5, "eot_threshold=1&eot_timeout_ms=60000": 10, "eot_timeout_ms=500&eot_threshold=0.9": 0.5} {
		_, set := flux(t, text)
		assert.InDelta(t, want, set.Silence, 1e-9, text)
	}
	for _, text := range []string{"eot_threshold=0.4", "eager_eot_threshold=1", "eot_timeout_ms=1"} {
		_, _, err := NewFlux(query(t, text), "id")
		assert.ErrorContains(t, err, "must be a number from")
	}
	_, set := flux(t, "model=flux-general-en")
	assert.Equal(t, "en", *set.Options.ASRLanguage)
	_, set = flux(t, "model=flux-general-multi&language_hint=de")
	assert.Equal(t, []string{"de"}, set.Extras.Languages)
}

// TestFluxReceive checks each message of a client.
func TestFluxReceive(t *testing.T) {
	f, _ := flux(t, "keyterm=old")
	assert.Equal(t, []doortest.Message{{"type": "Connected", "request_id": "id", "sequence_id": 0.0}}, doortest.Read(t, f.Begin()))
	for text, want := range map[string]doors.Action{`{"type":"ForceEndTurn"}`: doors.Commit{}, `{"type":"CloseStream"}`: doors.Finish{}} {
		actions, replies, err := f.Receive(true, []byte(text))
		require.NoError(t, err)
		assert.Empty(t, replies)
		assert.Equal(t, []doors.Action{want}, actions)
	}
	actions, replies, err := f.Receive(true, []byte(`{"type":"Configure","thresholds":{"eot_threshold":0.9,"eager_eot_threshold":0.4,"eot_timeout_ms":null},"keyterms":["new"],"language_hints":["en","de"]}`))
	require.NoError(t, err)
	set := actions[0].(doors.Configure)
	assert.InDelta(t, 0.9/1.4, set.Silence, 1e-9)
	assert.Equal(t, [][]string{{"new"}, {"en", "de"}}, [][]string{set.Options.Hotwords, set.Extras.Languages})
	assert.Equal(t, doortest.Message{
		"type": "ConfigureSuccess", "request_id": "id", "sequence_id": 1.0, "keyterms": []any{"new"}, "language_hints": []any{"en", "de"},
		"thresholds": map[string]any{"eot_threshold": 0.9, "eager_eot_threshold": 0.4, "eot_timeout_ms": 5000.0},
	}, doortest.Read(t, replies)[0])
	for _, bad := range []string{`"thresholds":{"eot_threshold":2}`, `"thresholds":{"speed":1}`, `"keyterms":["` + strings.Repeat("x", 65) + `"]`, `"keyterms":"new"`, `"language_hints":["en",1]`} {
		actions, replies, err := f.Receive(true, []byte(`{"type":"Configure",`+bad+`}`))
		require.NoError(t, err)
		assert.Empty(t, actions)
		assert.Equal(t, "ConfigureFailure", doortest.Read(t, replies)[0]["type"])
	}
	assert.InDelta(t, 0.9, f.thresholds["eot_threshold"], 1e-9, "a refused change has no effect")
	assert.Equal(t, []string{"new"}, f.set.Options.Hotwords)
	_, _, err = f.Receive(true, []byte(`{"type":"Finalize"}`))
	assert.ErrorContains(t, err, `type: expected CloseStream, ForceEndTurn or Configure, not "Finalize"`)
}

// TestFluxSend checks the messages of turns.
func TestFluxSend(t *testing.T) {
	var got []string
	record := func(f *Flux, events ...spec.LiveEvent) (last doortest.Message) {
		for _, e := range events {
			for _, m := range doortest.Read(t, f.Send(e)) {
				got = append(got, m["event"].(string)+": "+m["transcript"].(string))
				last = m
			}
		}
		return last
	}
	stopped := spec.LiveEvent{Kind: spec.LiveSpeechStopped, Start: 0.5, End: 2}
	final := spec.LiveEvent{Kind: spec.LiveFinal, Start: 0.5, End: 2, Text: "Good day.", Segments: sentences}
	partial := spec.LiveEvent{Kind: spec.LivePartial, Start: 0.5, End: 1, Text: "Good"}

	f, _ := flux(t, "eager_eot_threshold=0.4")
	m := record(f, spec.LiveEvent{Kind: spec.LiveSpeechStarted}, partial, spec.LiveEvent{Kind: spec.LivePartial, Text: "Good day"}, stopped, final)
	assert.Equal(t, []string{"StartOfTurn: Good", "Update: Good day", "EagerEndOfTurn: Good day", "EndOfTurn: Good day."}, got)
	assert.Equal(t, []any{"TurnInfo", "id", 3.0, 0.0, "model", 1.0, 0.5, 2.0}, []any{m["type"], m["request_id"], m["sequence_id"], m["turn_index"], m["trigger"], m["end_of_turn_confidence"], m["audio_window_start"], m["audio_window_end"]})
	assert.Equal(t, map[string]any{"word": "day.", "start": 1.0, "end": 2.0, "confidence": 1.0, "speaker": 1.0}, m["words"].([]any)[1])
	got = nil
	stopped.Utterance, final.Utterance = 1, 1
	m = record(f, stopped, spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: 1}, final)
	assert.Equal(t, []string{"StartOfTurn: Good day.", "EndOfTurn: Good day."}, got, "without partial texts")
	assert.Equal(t, []any{1.0, "manual"}, []any{m["turn_index"], m["trigger"]})
	got = nil
	record(f, spec.LiveEvent{Kind: spec.LiveSpeechStarted, Utterance: 2}, spec.LiveEvent{Kind: spec.LiveFinal, Utterance: 2}, spec.LiveEvent{Kind: spec.LiveCommitted, Utterance: -1})
	assert.Empty(t, got, "an utterance without text is no turn")

	f, _ = flux(t, "eot_threshold=1")
	final.Utterance = 0
	assert.Equal(t, "timeout", record(f, partial, final)["trigger"])

	list, code, _ := f.End(doors.End{Reason: doors.Invalid, Text: "why"})
	assert.Equal(t, []doortest.Message{{"type": "Error", "code": "SESSION_ENDED", "description": "why", "request_id": "id", "sequence_id": 2.0}}, doortest.Read(t, list))
	assert.Equal(t, 1008, code)
	list, code, _ = f.End(doors.End{})
	assert.Empty(t, list)
	assert.Equal(t, 1000, code)
}

// TestFluxOrder checks that every turn begins once, ends once, and ends before
// the next turn begins, with its own words alone.
func TestFluxOrder(t *testing.T) {
	for seed := range uint64(200) {
		f, _ := flux(t, "eager_eot_threshold=0.4")
		open, turn, sequence, texts := false, 0, 0, 0
		for _, e := range doortest.Events(rand.New(rand.NewPCG(seed, 2)), 6, false) {
			if e.Kind == spec.LiveFinal && e.Text != "" {
				texts++
			}
			for _, m := range doortest.Read(t, f.Send(e)) {
				require.InDelta(t, sequence, m["sequence_id"], 0)
				require.InDelta(t, turn, m["turn_index"], 0)
				require.Equal(t, !open, m["event"] == "StartOfTurn")
				sequence, open = sequence+1, true
				if m["event"] == "EndOfTurn" {
					require.Equal(t, e.Text, m["transcript"])
					turn, open = turn+1, false
				}
			}
		}
		require.Equal(t, texts, turn)
	}
}
