// Package doortest makes the events of live sessions for tests of doors.
package doortest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// Message is a message of a door.
type Message map[string]any

// Read returns messages, each of which must be a JSON object.
func Read(t testing.TB, list [][]byte) (out []Message) {
	t.Helper()
	for _, data := range list {
		var m Message
		require.NoError(t, json.Unmarshal(data, &m), "%s", data)
		out = append(out, m)
	}
	return out
}

// Events returns the events of a session with some utterances, in an order that
// a session under load may have: final texts come in order, but possibly after
// partial texts of later utterances. With growing, the text of an utterance
// only grows.
func Events(r *rand.Rand, utterances int, growing bool) (list []spec.LiveEvent) {
	var waiting []spec.LiveEvent // final texts
	deliver := func(all bool) {
		for len(waiting) > 0 && (all || r.IntN(2) == 0) {
			list, waiting = append(list, waiting[0]), waiting[1:]
		}
	}
	for u := range utterances {
		start := float64(4 * u)
		var words []string
		for range r.IntN(5) {
			words = append(words, fmt.Sprintf("w%d%c", u, 'a'+rune(len(words))))
		}
		list = append(list, spec.LiveEvent{Kind: spec.LiveSpeechStarted, Utterance: u, Start: start})
		for n := range words {
			deliver(false)
			text := strings.Join(words[:n+1], " ")
			if !growing && r.IntN(3) == 0 {
				text = fmt.Sprintf("revised %d", n)
			}
			list = append(list, spec.LiveEvent{Kind: spec.LivePartial, Utterance: u, Start: start, End: start + float64(n)/4 + 0.5, Text: text})
		}
		list = append(list, spec.LiveEvent{Kind: spec.LiveSpeechStopped, Utterance: u, Start: start, End: start + 2})
		final := spec.LiveEvent{Kind: spec.LiveFinal, Utterance: u, Start: start, End: start + 2, Text: strings.Join(words, " ")}
		if len(words) > 0 {
			final.Segments = []spec.Segment{{ID: u, Start: start, End: start + 2, Text: final.Text, Speaker: spec.SpeakerName(u % 2)}}
		}
		waiting = append(waiting, final)
		deliver(false)
	}
	deliver(true)
	return list
}
