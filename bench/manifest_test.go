package bench

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
{"file": "b.wav", "text": "", "language": "", "events": [], "sentences": []}

{
  "file": "/c.wav", "speakers": {"A": "male", "B": "female"}, "turns": [{"speaker": "A", "start": 0, "end": 1}],
  "events": [{"label": "Music", "start": 0, "end": 5}, {"class": "Speech", "start": 1, "end": 2}],
  "words": [{"word": "hello", "start": 0.1, "end": 0.4}]
}`), dir)
	require.NoError(t, err)
	require.Len(t, items, 3)
	assert.Equal(t, Item{
		Name: "x/a.flac", Path: filepath.Join(dir, "x", "a.flac"), Text: new("Hello."), Language: "en",
		Turns: []SpeakerTurn{{0, 2, "ann"}, {2, 3, "bob"}}, Speakers: new(2), Sentences: []TimedText{{1, 2, "Hello."}},
	}, items[0])
	assert.Equal(t, Item{Name: "b.wav", Path: filepath.Join(dir, "b.wav"), Text: new(""), Events: []EventSpan{}}, items[1])
	assert.Equal(t, Item{
		Name: "/c.wav", Path: "/c.wav", Speakers: new(2), Turns: []SpeakerTurn{{0, 1, "A"}},
		Events: []EventSpan{{Start: 0, End: 5, Class: "Music"}, {Start: 1, End: 2, Class: "Speech"}}, Words: []TimedText{{0.1, 0.4, "hello"}},
	}, items[2])
}

func TestReadManifestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "names no recording",
		"{\"file\":\"a\"}\n\n{]":            "line 3",
		`{"text": "x"}`:                     `"file" is missing`,
		`{"file":"a"}{"file":"a"}`:          "has been named on line 1",
		`{"file":"a","language":"klingon"}`: `unknown language "klingon"`,
		`{"file":"a","events":[{"class":"Musik","start":0,"end":1}]}`:        `the nearest is "Music"`,
		`{"file":"a","events":[{"class":"Music","start":2,"end":1}]}`:        "events: expected 0 ≤ start ≤ end",
		`{"file":"a","turns":[{"speaker":"A","start":-1,"end":1}]}`:          "turns: expected",
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
	items, err := Load(dir)
	require.NoError(t, err)
	assert.Equal(t, []Item{
		{Name: "a.wav", Path: filepath.Join(dir, "a.wav"), Text: new("Good morning."), Turns: []SpeakerTurn{{0, 2, "ann"}}, Speakers: new(1)},
		{Name: "sub/b.flac", Path: filepath.Join(dir, "sub", "b.flac")},
	}, items)

	_, err = Load(t.TempDir())
	require.ErrorIs(t, err, ErrManifest)
	_, err = Load(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, ErrManifest)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.rttm"), []byte("SPEAKER a\n"), 0o600))
	_, err = Load(dir)
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
