package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench"
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
