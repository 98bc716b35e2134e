package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReferences checks what each format contributes to a recording's reference,
// and that other recordings keep theirs.
func TestReferences(t *testing.T) {
	put := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	sentences := []TimedText{{Start: 0, End: 1, Text: "good morning"}, {Start: 1, End: 2, Text: "hello"}}
	turns := []SpeakerTurn{{Start: 0, End: 1, Speaker: "A"}, {Start: 1, End: 2, Speaker: "B"}}
	whole := Item{
		Name: "x/a.wav", Text: new("good morning\nhello"), Sentences: sentences, SentenceSpeakers: []string{"A", "B"}, Turns: turns, Speakers: new(2),
	}
	items := []Item{{Name: "x/a.wav", Text: new("old")}, {Name: "b.wav", Text: new("kept")}}
	for name, text := range map[string]string{
		"r.stm":  "a 1 A 0 1 good morning\na 1 B 1 2 hello\n",
		"r.json": `[{"session_id":"a","speaker":"A","start_time":0,"end_time":1,"words":"good morning"},{"session_id":"a","speaker":"B","start_time":1,"end_time":2,"words":"hello"}]`,
	} {
		got, err := withReferences(put(name, text), items)
		require.NoError(t, err)
		assert.Equal(t, []Item{whole, items[1]}, got, name)
	}
	got, err := withReferences(put("r.rttm", "SPEAKER a 1 0 1 <NA> <NA> A <NA> <NA>\nSPEAKER a 1 1 1 <NA> <NA> B <NA> <NA>\n"), items)
	require.NoError(t, err)
	assert.Equal(t, Item{Name: "x/a.wav", Text: new("old"), Turns: turns, Speakers: new(2)}, got[0], "turns alone keep the text")
	assert.Equal(t, items[1], got[1], "the file has no turns of it")
	got, err = withReferences(put("r.ctm", "a 1 0 0.5 good\na 1 0.5 0.5 morning\n"), items)
	require.NoError(t, err)
	assert.Equal(t, []TimedText{{Start: 0, End: 0.5, Text: "good"}, {Start: 0.5, End: 1, Text: "morning"}}, got[0].Words)
	assert.Nil(t, got[0].Turns)
	_, err = withReferences(put("r.stm", "z 1 A 0 1 other\n"), items)
	require.ErrorContains(t, err, "expected lines of x/a.wav or of another recording of the manifest, found z")
	_, err = withReferences(put("r.json", `[{"session_id":"z","words":"other"}]`), items)
	require.ErrorContains(t, err, "found none")
}

// TestTextsBesideRecordings: a text that a program wrote with times or speakers
// is a reference without them.
func TestTextsBesideRecordings(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.wav": "", "a.txt": "[SPEAKER_00]: good morning\n[SPEAKER_01]: yes\n",
		"b.wav": "", "b.lab": "plain words\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	items, err := Load(dir)
	require.NoError(t, err)
	require.Len(t, items, 2)
	assert.Equal(t, "good morning\nyes", *items[0].Text)
	assert.Equal(t, "plain words", *items[1].Text)
}

// TestNISTReferences scores transcripts by references with NIST's marks, as
// sclite does: segments that are not scored, optional words and alternatives, in
// the order of time.
func TestNISTReferences(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	hyp := put("hyp.ctm", "a 1 1.2 0.3 noise\na 1 0.5 0.2 two\na 1 0.1 0.2 one\nb 1 0 0.5 tree\n")
	for name, c := range map[string]struct {
		text          string
		errors, words int
	}{
		"ignored.stm":      {";; x\na 1 a 0.0 1.0 <NA> one two\na 1 x 1.0 2.0 <o,f0,unknown> ignore_time_segment_in_scoring\nb 1 b 0.0 1.0 <NA> tree\n", 0, 3},
		"optional.stm":     {"a 1 a 0.5 2.0 <NA> { too / two } noise\na 1 a 0.0 0.5 <NA> one (uh)\nb 1 b 0.0 1.0 <NA> { three / tree }\n", 0, 4},
		"alternatives.ctm": {"a 1 1.2 0.3 noise\na 1 * * <ALT_BEGIN>\na 1 0.5 0.2 too\na 1 * * <ALT>\na 1 0.5 0.2 two\na 1 * * <ALT_END>\na 1 0.1 0.2 one\nb A * * <ALT_BEGIN>\nb A 0.0 0.5 three\nb A * * <ALT>\nb A 0.0 0.5 tree\nb A * * <ALT_END>\n", 0, 4},
		"wrong.stm":        {"a 1 a 0.0 2.0 one { too / to } noise\nb 1 b 0.0 1.0 three\n", 2, 4},
	} {
		items, err := withReferences(put(name, c.text), []Item{{Name: "a.wav"}, {Name: "b.wav"}})
		require.NoError(t, err, name)
		engine, err := Files(hyp, items)
		require.NoError(t, err)
		report, err := Run(t.Context(), Config{Items: items, Systems: []System{{Name: "x", Engine: engine}}})
		require.NoError(t, err)
		words := report.Systems[0].Accuracy.Words
		assert.Equal(t, []int{c.errors, c.words}, []int{words.Errors(), words.Reference}, name)
		if name == "ignored.stm" {
			assert.Equal(t, 1, *items[0].Speakers, "no speaker of the time that is not scored")
		}
	}
	engine, err := Files(put("hyp.stm", "a 1 a 0 1 one (uh) two\na 1 a 1 2 IGNORE_TIME_SEGMENT_IN_SCORING\n"), []Item{{Name: "a.wav"}})
	require.NoError(t, err)
	res, _, err := engine.Transcribe(t.Context(), Item{Name: "a.wav"})
	require.NoError(t, err)
	require.Len(t, res.Segments, 1)
	assert.Equal(t, "one uh two", res.Segments[0].Text)
}
