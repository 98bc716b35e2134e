package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/spec"
)

// TestBenchReferencesFromCorrections: a corrected result of the service is a
// reference: its sentences, with the speakers and turns that people gave them.
func TestBenchReferencesFromCorrections(t *testing.T) {
	r := &otograph.Result{
		Ran: spec.Capabilities{ASR: true, Diarize: true}, NumSpeakers: 1, AudioDuration: 3,
		Segments: []otograph.Segment{
			{ID: 0, Start: 0, End: 2, Text: "good morning hello", Speaker: "SPEAKER_0", Words: []otograph.Word{{Word: " good", End: 0.5}, {Word: " morning", Start: 0.5, End: 1}, {Word: " hello", Start: 1, End: 2}}},
			{ID: 1, Start: 2, End: 3, Text: "gutten day", Speaker: "SPEAKER_0", Words: []otograph.Word{{Word: " gutten", Start: 2, End: 2.5}, {Word: " day", Start: 2.5, End: 3}}},
		},
		DiarizeSegments: []otograph.Turn{{Start: 0, End: 3, Speaker: "SPEAKER_0"}},
	}
	require.NoError(t, corrections.Apply(r, []corrections.Entry{
		{Version: 1, Change: corrections.Change{Op: corrections.Split, Segment: new(0), At: 13}},
		{Version: 2, Change: corrections.Change{Op: corrections.Assign, Segment: new(2), Speaker: "SPEAKER_1"}},
		{Version: 3, Change: corrections.Change{Op: corrections.Annotate, Texts: map[string]*string{"1": new("guten Tag")}}},
	}))
	data, err := json.Marshal(r)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.json"), data, 0o600))
	manifest := filepath.Join(folder, "m.jsonl")
	require.NoError(t, os.WriteFile(manifest, []byte(`{"file":"a.wav"}`), 0o600))
	got, err := bench.Load(manifest, folder)
	require.NoError(t, err)
	assert.Equal(t, "good morning\nhello\nguten Tag", *got[0].Text)
	assert.Equal(t, []bench.TimedText{{Start: 0, End: 1, Text: "good morning"}, {Start: 1, End: 2, Text: "hello"}, {Start: 2, End: 3, Text: "guten Tag"}}, got[0].Sentences)
	assert.Equal(t, []string{"SPEAKER_0", "SPEAKER_1", "SPEAKER_0"}, got[0].SentenceSpeakers)
	assert.Equal(t, []bench.SpeakerTurn{{Start: 0, End: 1, Speaker: "SPEAKER_0"}, {Start: 1, End: 2, Speaker: "SPEAKER_1"}, {Start: 2, End: 3, Speaker: "SPEAKER_0"}}, got[0].Turns)
	assert.Equal(t, 2, *got[0].Speakers)
	assert.Equal(t, []bench.TimedText{{Start: 0, End: 0.5, Text: " good"}, {Start: 0.5, End: 1, Text: " morning"}, {Start: 1, End: 2, Text: " hello"}}, got[0].Words, "words with known times")
}
