package spec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The presence of a key shows that a capability ran; nothing is ever null.
func TestResultKeys(t *testing.T) {
	base := []string{"audio_duration", "audio_md5"}
	asrKeys := []string{"language", "language_probability", "segments", "vad_segments"}
	diarizeKeys := []string{"num_speakers", "speaker_embeddings", "diarize_segments"}
	eventKeys := []string{"audio_events"}
	for _, ran := range []Capabilities{{}, {ASR: true}, {AudioEvents: true}, {ASR: true, Diarize: true}, {ASR: true, Diarize: true, AudioEvents: true}} {
		want := append([]string{}, base...)
		if ran.ASR {
			want = append(want, asrKeys...)
		}
		if ran.Diarize {
			want = append(want, diarizeKeys...)
		}
		if ran.AudioEvents {
			want = append(want, eventKeys...)
		}
		b, err := json.Marshal(Result{Ran: ran})
		require.NoError(t, err)
		assert.NotContains(t, string(b), "null")
		var m map[string]any
		require.NoError(t, json.Unmarshal(b, &m))
		var got []string
		for k := range m {
			got = append(got, k)
		}
		assert.ElementsMatch(t, want, got, "%+v", ran)
		var back Result
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, ran, back.Ran)
	}
}

// The probability of the number of speakers is there if it is known.
func TestNumSpeakersProbability(t *testing.T) {
	b, err := json.Marshal(Result{Ran: Capabilities{ASR: true, Diarize: true}, NumSpeakers: 2, NumSpeakersProbability: new(0.86)})
	require.NoError(t, err)
	assert.Contains(t, string(b), `"num_speakers":2,"num_speakers_probability":0.86`)
	var back Result
	require.NoError(t, json.Unmarshal(b, &back))
	assert.Equal(t, new(0.86), back.NumSpeakersProbability)
}

func TestSegmentWords(t *testing.T) {
	without, err := json.Marshal(Segment{Text: "a"})
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":0,"start":0,"end":0,"text":"a"}`, string(without))
	with, err := json.Marshal(Segment{Text: "a", Speaker: "SPEAKER_1", Words: []Word{}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":0,"start":0,"end":0,"text":"a","speaker":"SPEAKER_1","words":[]}`, string(with))
}
