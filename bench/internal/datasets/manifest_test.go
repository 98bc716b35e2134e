package datasets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadManifest(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.rttm"), []byte("SPEAKER a 1 0 2 <NA> <NA> ann <NA> <NA>\nSPEAKER a 1 2 1 <NA> <NA> bob <NA> <NA>\nSPEAKER other 1 0 9 <NA> <NA> eve <NA> <NA>\n"), 0o600))
	items, err := readManifest(strings.NewReader(`{"file": "x/a.flac", "text": "Hello.", "language": "eng", "rttm": "a.rttm", "voice": "v", "sentences": [{"start": 1, "end": 2, "text": "Hello."}]}
{"file": "b.wav", "text": "", "language": "", "turns": [], "events": [], "sentences": []}

{
  "file": "/c.wav", "speakers": {"A": "male", "B": "female"}, "turns": [{"speaker": "A", "start": 0, "end": 1}],
  "events": [{"label": "Music", "start": 0, "end": 5}, {"class": "Speech", "start": 1, "end": 2}],
  "words": [{"word": "hello", "start": 0.1, "end": 0.4}]
}`), dir)
	require.NoError(t, err)
	require.Len(t, items, 3)
	assert.Equal(t, Item{
		Name: "x/a.flac", Path: filepath.Join(dir, "x", "a.flac"), Text: new("Hello."), Language: "en",
		Turns: []SpeakerTurn{{Start: 0, End: 2, Speaker: "ann"}, {Start: 2, End: 3, Speaker: "bob"}}, Speakers: new(2), Sentences: []TimedText{{1, 2, "Hello."}},
		Keys: map[string]string{"voice": "v"},
	}, items[0])
	assert.Equal(t, Item{Name: "b.wav", Path: filepath.Join(dir, "b.wav"), Text: new(""), Turns: []SpeakerTurn{}, Speakers: new(0), Events: []EventSpan{}}, items[1])
	assert.Equal(t, Item{
		Name: "/c.wav", Path: "/c.wav", Speakers: new(2), Turns: []SpeakerTurn{{Start: 0, End: 1, Speaker: "A"}},
		Events: []EventSpan{{Start: 0, End: 5, Class: "Music"}, {Start: 1, End: 2, Class: "Speech"}}, Words: []TimedText{{0.1, 0.4, "hello"}},
	}, items[2])
}

func TestReadManifestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "names no recording",
		"{\"file\":\"a\"}\n\n{]":            "line 3",
		`{"text": "x"}`:                     `"file" is missing`,
		`{"file":"a"}{"file":"a"}`:          "has been named on line 1",
		`{"file":"a","duration":"2"}`:       `line 1: key "duration": expected a number, found a value of type string`,
		`[1]`:                               "line 1: expected an object, found a value of type number",
		`{"file":"a","language":"klingon"}`: `unknown language "klingon"`,
		`{"file":"a","events":[{"class":"Musik","start":0,"end":1}]}`:        `the nearest is "Music"`,
		`{"file":"a","events":[{"class":"Music","start":2,"end":1}]}`:        "events: expected 0 ≤ start ≤ end",
		`{"file":"a","turns":[{"speaker":"A","start":-1,"end":1}]}`:          "turns: expected",
		`{"file":"a","events":[{"class":"Speech","start":0,"end":1e12}]}`:    "events: expected 0 ≤ start ≤ end ≤ 1e+06",
		`{"file":"a","speakers":"two"}`:                                      "speakers: expected their number",
		`{"file":"a","rttm":"none.rttm"}`:                                    "none.rttm",
		`{"file":"a","rttm":"b.rttm","turns":[]}`:                            "use only one of the two",
		`{"file":"a","words":[{"word":"x","start":1e999,"end":1}]}`:          "line 1",
		"{\"file\":\"a\"}\n{\"file\":\"b\",\"sentences\":[{\"start\":3}]}\n": "line 2: sentences",
	} {
		_, err := readManifest(strings.NewReader(text), t.TempDir())
		require.ErrorIs(t, err, ErrManifest, text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestLoadFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	for name, data := range map[string]string{
		"a.wav": "", "a.txt": "Good morning.\n", "a.rttm": "SPEAKER a 1 0 2 <NA> <NA> ann <NA> <NA>\n",
		"sub/b.flac": "", ".hidden.wav": "", "README.md": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	items, err := Load(dir, strings.Clone)
	require.NoError(t, err)
	assert.Equal(t, []Item{
		{Name: "a.wav", Path: filepath.Join(dir, "a.wav"), Text: new("Good morning."), Turns: []SpeakerTurn{{Start: 0, End: 2, Speaker: "ann"}}, Speakers: new(1)},
		{Name: "sub/b.flac", Path: filepath.Join(dir, "sub", "b.flac")},
	}, items)

	_, err = Load(t.TempDir(), strings.Clone)
	require.ErrorIs(t, err, ErrManifest)
	_, err = Load(filepath.Join(dir, "none"), strings.Clone)
	require.ErrorIs(t, err, ErrManifest)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.rttm"), []byte("SPEAKER a\n"), 0o600))
	_, err = Load(dir, strings.Clone)
	require.ErrorIs(t, err, ErrRTTM)
}

func FuzzReadManifest(f *testing.F) {
	f.Add(`{"file":"a.wav","text":"x","language":"de"}`)
	f.Add(`{"file":"a","events":[{"label":"Music","start":0,"end":5}],"speakers":[1,2]}`)
	f.Add("{\"file\":\"a\"}\n{\"file\":\"a\"}")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := readManifest(strings.NewReader(text), "/nowhere")
		if err != nil {
			require.ErrorIs(t, err, ErrManifest)
			return
		}
		seen := map[string]bool{}
		for _, it := range items {
			require.NotEmpty(t, it.Name)
			require.False(t, seen[it.Name])
			seen[it.Name] = true
			for _, w := range it.Words {
				require.LessOrEqual(t, w.Start, w.End)
			}
		}
	})
}

// TestReferencesOfOtherPrograms: a shared RTTM file, names with blanks, byte
// order marks and encodings.
func TestReferencesOfOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"all.rttm":    "SPEAKER a 1 0.25 1.01 <NA> <NA> anna <NA> <NA>\nSPEAKER b 1 0.25 1.80 <NA> <NA> bert <NA> <NA>\n",
		"one.rttm":    "\ufeffSPEAKER talk 1 0.25 0.50 <NA> <NA> anna <NA> <NA>\r\nSPEAKER talk 1 0.80 0.40 <NA> <NA> anna <NA> <NA>\r\n",
		"blanks.rttm": "SPEAKER My_first_talk 1 0 1 <NA> <NA> anna <NA> <NA>\nSPEAKER other.flac 1 0 1 <NA> <NA> anna <NA> <NA>\n",
		"sorted.rttm": "SPEAKER rec 1 10 5 <NA> <NA> B <NA> <NA>\nSPEAKER rec 1 0 10 <NA> <NA> A <NA> <NA>\nSPKR-INFO rec 1 <NA> <NA> <NA> unknown A <NA>\n",
		"m.jsonl": "\ufeff" + `{"file":"a.opus","text":"I hate pasta.","rttm":"all.rttm"}{"file":"quiet.flac","rttm":"all.rttm"}{"file":"b.flac","rttm":"one.rttm"}
{"file":"x/My first talk.wav","rttm":"blanks.rttm"}{"file":"other.flac","rttm":"blanks.rttm"}{"file":"rec.wav","rttm":"sorted.rttm"}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	items, err := Load(filepath.Join(dir, "m.jsonl"), strings.Clone)
	require.NoError(t, err)
	turns := map[string]int{}
	for _, it := range items {
		turns[it.Name] = len(it.Turns)
	}
	assert.Equal(t, map[string]int{"a.opus": 1, "quiet.flac": 0, "b.flac": 2, "x/My first talk.wav": 1, "other.flac": 1, "rec.wav": 2}, turns)
	assert.Equal(t, "I hate pasta.", *items[0].Text)
	assert.Equal(t, []SpeakerTurn{{Start: 10, End: 15, Speaker: "B"}, {Start: 0, End: 10, Speaker: "A"}}, items[5].Turns)
	_, err = Load(filepath.Join(dir, "one.rttm"), strings.Clone)
	require.ErrorIs(t, err, ErrManifest)

	for text, want := range map[string]string{"\xff\xfeH\x00i\x00": "Hi", "\ufeffHi\n": "Hi", "Gr\xfc\xdfe": ""} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "a.wav"), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte(text), 0o600))
		items, err := Load(folder, strings.Clone)
		if want == "" {
			require.ErrorContains(t, err, filepath.Join(folder, "a.txt")+": expected a text in UTF-8")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, *items[0].Text)
	}
}

// Other programs' manifests work as references without conversion.
func TestManifestsOfOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	lines := filepath.Join(dir, "references.txt")
	require.NoError(t, os.WriteFile(lines, []byte("Hello there.\r\n\nGoodbye.\n"), 0o600))
	items, err := Load(lines, strings.Clone)
	require.NoError(t, err)
	assert.Equal(t, []Item{{Name: "line 1", Text: new("Hello there.")}, {Name: "line 2", Text: new("")}, {Name: "line 3", Text: new("Goodbye.")}}, items)

	rows := filepath.Join(dir, "results.jsonl")
	require.NoError(t, os.WriteFile(rows, []byte(`{"audio_filepath": "a.wav", "duration": 2, "time": 0.1, "text": "hello", "pred_text": "hallo"}`), 0o600))
	items, err = Load(rows, strings.Clone)
	require.NoError(t, err)
	assert.Equal(t, "a.wav", items[0].Name)
	assert.Equal(t, "hello", *items[0].Text)
	assert.NotContains(t, items[0].Keys, "pred_text")
}
