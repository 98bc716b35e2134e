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

// TestBenchReferences checks what each format contributes to a recording's reference,
// and that other recordings keep theirs.
func TestBenchReferences(t *testing.T) {
	put := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	sentences := []bench.TimedText{{Start: 0, End: 1, Text: "good morning"}, {Start: 1, End: 2, Text: "hello"}}
	turns := []bench.SpeakerTurn{{Start: 0, End: 1, Speaker: "A"}, {Start: 1, End: 2, Speaker: "B"}}
	whole := bench.Item{
		Name: "x/a.wav", Text: new("good morning\nhello"), Sentences: sentences, SentenceSpeakers: []string{"A", "B"}, Turns: turns, Speakers: new(2),
	}
	items := []bench.Item{{Name: "x/a.wav", Text: new("old")}, {Name: "b.wav", Text: new("kept")}}
	for name, text := range map[string]string{
		"r.stm":  "a 1 A 0 1 good morning\na 1 B 1 2 hello\n",
		"r.json": `[{"session_id":"a","speaker":"A","start_time":0,"end_time":1,"words":"good morning"},{"session_id":"a","speaker":"B","start_time":1,"end_time":2,"words":"hello"}]`,
	} {
		got, err := withReferences(t.Context(), put(name, text), items)
		require.NoError(t, err)
		want := whole
		want.TurnsFrom = name
		assert.Equal(t, []bench.Item{want, items[1]}, got, name)
	}
	got, err := withReferences(t.Context(), put("r.rttm", "SPEAKER a 1 0 1 <NA> <NA> A <NA> <NA>\nSPEAKER a 1 1 1 <NA> <NA> B <NA> <NA>\n"), items)
	require.NoError(t, err)
	assert.Equal(t, bench.Item{Name: "x/a.wav", Text: new("old"), Turns: turns, Speakers: new(2), TurnsFrom: "r.rttm"}, got[0], "turns alone keep the text")
	assert.Equal(t, items[1], got[1], "the file has no turns of it")
	corrected := []bench.Item{{Name: "a.wav", Text: new("old"), Corrected: new("new")}}
	got, err = withReferences(t.Context(), put("r.stm", "a 1 A 0 1 good morning\n"), corrected)
	require.NoError(t, err)
	assert.Nil(t, got[0].Corrected, "it corrects the text that was replaced")
	got, err = withReferences(t.Context(), put("r.ctm", "a 1 0 0.5 good\na 1 0.5 0.5 morning\n"), items)
	require.NoError(t, err)
	assert.Equal(t, []bench.TimedText{{Start: 0, End: 0.5, Text: "good"}, {Start: 0.5, End: 1, Text: "morning"}}, got[0].Words)
	assert.Nil(t, got[0].Turns)
	_, err = withReferences(t.Context(), put("r.stm", "z 1 A 0 1 other\n"), items)
	require.ErrorContains(t, err, "found none")
}

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
	got, err := withReferences(t.Context(), folder, []bench.Item{{Name: "a.wav"}})
	require.NoError(t, err)
	assert.Equal(t, "good morning\nhello\nguten Tag", *got[0].Text)
	assert.Equal(t, []bench.TimedText{{Start: 0, End: 1, Text: "good morning"}, {Start: 1, End: 2, Text: "hello"}, {Start: 2, End: 3, Text: "guten Tag"}}, got[0].Sentences)
	assert.Equal(t, []string{"SPEAKER_0", "SPEAKER_1", "SPEAKER_0"}, got[0].SentenceSpeakers)
	assert.Equal(t, []bench.SpeakerTurn{{Start: 0, End: 1, Speaker: "SPEAKER_0"}, {Start: 1, End: 2, Speaker: "SPEAKER_1"}, {Start: 2, End: 3, Speaker: "SPEAKER_0"}}, got[0].Turns)
	assert.Equal(t, 2, *got[0].Speakers)
	assert.Equal(t, []bench.TimedText{{Start: 0, End: 0.5, Text: " good"}, {Start: 0.5, End: 1, Text: " morning"}, {Start: 1, End: 2, Text: " hello"}}, got[0].Words, "words with known times")
}
