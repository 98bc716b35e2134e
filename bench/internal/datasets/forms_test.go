package datasets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestManifestForms reads the same recordings from JSON lines, a JSON list and
// tables, with parts of files.
func TestManifestForms(t *testing.T) {
	want := []Item{
		{Name: "a.wav", Path: "d/a.wav", Text: new("Hello, you."), Language: "de", Part: &Part{0, 4}},
		{Name: "a@4.5.wav", Path: "d/a.wav", Text: new("there"), Language: "de", Part: &Part{4.5, 2}},
	}
	for name, text := range map[string]string{
		"lines": `{"audio_filepath":"a.wav","text":"Hello, you.","language":"de","offset":0,"duration":4}` + "\n" + `{"file":"a.wav","text":"there","language":"de","offset":4.5,"duration":2}`,
		"list":  `[{"file":"a.wav","text":"Hello, you.","language":"de","offset":0,"duration":4}, {"file":"a.wav","text":"there","language":"de","offset":4.5,"duration":2}]`,
		"caps":  `{"Path":"a.wav","Transcript":"Hello, you.","lang":"de","offset":0,"duration":4}{"file":"a.wav","test":1,"speaker":"x","duration_s":3,"text":"there","language":"de","offset":4.5,"duration":2}`,
		"csv":   "path,transcription,locale,offset,duration\na.wav,\"Hello, you.\",de,0,4\na.wav,there,de,4.5,2\n",
		"tsv":   "client_id\tpath\tsentence\tlocale\toffset\tduration\nx\ta.wav\tHello, you.\tde\t0\t4\ny\ta.wav\tthere\tde\t4.5\t2\n",
	} {
		items, err := readManifest(strings.NewReader(text), "d")
		require.NoError(t, err, name)
		for i := range items {
			items[i].Keys = nil
		}
		assert.Equal(t, want, items, name)
	}
	for text, why := range map[string]string{
		"a,b\n1,2":                                    "expected JSON objects, a list of them, or a table",
		`[{"file":"a.wav"}`:                           "the list has no end",
		`{"file":"a.wav"} x`:                          "line 1: invalid character",
		`{"file":"a.wav","offset":-1}`:                "offset and duration",
		`{"file":"a.wav","start":1.5,"end":2}`:        `key "start": expected offset and duration`,
		"path,begin\na.wav,3":                         `line 2: key "begin": expected offset`,
		`{"file":"https://x/a.wav"}`:                  "https://x/a.wav: expected a file, got an address",
		"path,offset\na.wav,soon":                     `line 2: offset: expected a number, got "soon"`,
		`{"file":"a.wav"}{"file":"b.wav","txet":"a"}`: `line 1: unknown key "txet"; did you mean "text"?`,
		`[{"file":"a.wav","Ofset":3}]`:                `unknown key "Ofset"; did you mean "offset"?`,
		"file,txt\na.wav,x":                           `line 2: unknown key "txt"; did you mean "text"?`,
		"path\tsentense\na.wav\tx":                    `line 2: unknown key "sentense"; did you mean "sentence"?`,

		`{"file":"a.wav","turns":[{"start":0,"end":1,"spk":"a"}]}`:   `turns: the key "speaker" is missing`,
		`{"file":"a.wav","words":[{"start":0,"end":1,"token":"a"}]}`: `words: the key "text" or "word" is missing`,
		"{\"file\":\"a.wav\"}\n{\"file\":\"a.wav\"}":                 "line 2: a.wav has been named on line 1 already",
	} {
		_, err := readManifest(strings.NewReader(text), "d")
		require.ErrorIs(t, err, ErrManifest)
		assert.ErrorContains(t, err, why)
	}
}

// TestPartOfTurns: files state turns and evaluated times from the start of the
// whole recording.
func TestPartOfTurns(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.rttm"), []byte("SPEAKER a 1 3 2 <NA> <NA> x <NA> <NA>\nSPEAKER a 1 9 1 <NA> <NA> y <NA> <NA>\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.uem"), []byte("a 1 0 4.5\n"), 0o600))
	items, err := readManifest(strings.NewReader(`{"file":"a.wav","offset":4,"duration":3,"rttm":"a.rttm","uem":"a.uem"}`), dir)
	require.NoError(t, err)
	assert.Equal(t, []SpeakerTurn{{Start: 0, End: 1, Speaker: "x"}}, items[0].Turns)
	assert.Equal(t, [][2]float64{{0, 0.5}}, items[0].Evaluated)
}

// TestFolderForms reads folders of Kaldi, and texts with other endings.
func TestFolderForms(t *testing.T) {
	put := func(dir string, files map[string]string) string {
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		return dir
	}
	dir := put(t.TempDir(), map[string]string{"wav.scp": "rec a.wav\n", "a.wav": "", "segments": "u1 rec 0 1.5\nu2 rec 1.5 2\n", "text": "u1 good morning\nu2 you\n"})
	items, err := Load(dir, strings.Clone)
	require.NoError(t, err)
	path := filepath.Join(dir, "a.wav")
	assert.Equal(t, []Item{{Name: "u1", Path: path, Part: &Part{0, 1.5}, Text: new("good morning")}, {Name: "u2", Path: path, Part: &Part{1.5, 0.5}, Text: new("you")}}, items)
	_, err = Load(put(t.TempDir(), map[string]string{"wav.scp": "rec sph2pipe a.sph |\n"}), strings.Clone)
	require.ErrorContains(t, err, "commands are not run")
	items, err = Load(put(t.TempDir(), map[string]string{"A.FLAC": "", "A.TXT": "one\n", "b.wav": "", "b.lab": "two"}), strings.Clone)
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two"}, []string{*items[0].Text, *items[1].Text})
	for text, want := range map[string]string{
		"0 46797 She had your suit. \n": "She had your suit.", // TIMIT
		"0 46797 12\n":                  "0 46797 12",
		"0 1000 a\n0 2000 b":            "0 1000 a\n0 2000 b",
		"0 100 meters":                  "0 100 meters",
	} {
		items, err := Load(put(t.TempDir(), map[string]string{"SA1.WAV": "", "SA1.TXT": text}), strings.Clone)
		require.NoError(t, err)
		assert.Equal(t, want, *items[0].Text)
	}
}
