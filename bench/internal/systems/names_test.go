package systems

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench/internal/datasets"
)

// TestNamesInFolders checks that recordings of one name in different folders get
// their own transcripts, or an error instead of another recording's.
func TestNamesInFolders(t *testing.T) {
	const both = `{"audio_filepath":"/far/a/1.wav","pred_text":"one"}` + "\n" + `{"audio_filepath":"/far/b/1.wav","pred_text":"two"}`
	for name, c := range map[string]struct {
		files  map[string]string
		names  []string
		texts  []string
		wrong  string
		shared []string // texts, if several recordings may share one
	}{
		"rows":            {map[string]string{"h.jsonl": both}, []string{"a/1.flac", "b/1.flac"}, []string{"one", "two"}, "", nil},
		"one row":         {map[string]string{"h.jsonl": `{"audio_filepath":"1.wav","pred_text":"one"}`}, []string{"a/1.flac", "b/1.flac"}, nil, "1.wav fits both", []string{"one", "one"}},
		"rows that tie":   {map[string]string{"h.jsonl": both}, []string{"1.flac"}, nil, "fit 1.flac", nil},
		"equal names":     {map[string]string{"h.jsonl": both + `{"audio_filepath":"1.wav","pred_text":"three"}`}, []string{"1.flac", "a/1.flac"}, []string{"three", "one"}, "", nil},
		"folders":         {map[string]string{"a/1.txt": "one", "b/1.txt": "two"}, []string{"a/1.flac", "b/1.flac"}, []string{"one", "two"}, "", nil},
		"fewer folders":   {map[string]string{"1.txt": "one", "2.txt": "two"}, []string{"/far/a/1.flac", "b/2.flac"}, []string{"one", "two"}, "", nil},
		"one file":        {map[string]string{"1.txt": "one"}, []string{"a/1.flac", "b/1.flac"}, nil, "1 fits both", []string{"one", "one"}},
		"two codecs":      {map[string]string{"a/1.txt": "one"}, []string{"a/1.flac", "a/1.mp3"}, []string{"one", "one"}, "", nil},
		"none":            {map[string]string{"2.txt": "two"}, []string{"a/1.flac"}, nil, "there is no transcript", nil},
		"an unread form":  {map[string]string{"a/1.TextGrid": ""}, []string{"a/1.flac"}, nil, "1.TextGrid is not read", nil},
		"whisper.cpp's":   {map[string]string{"a/1.flac.txt": "one"}, []string{"a/1.flac"}, []string{"one"}, "", nil},
		"Kaldi's text":    {map[string]string{"h.lines": "2 two\n1 one\n"}, []string{"1.flac", "2.flac"}, []string{"one", "two"}, "", nil},
		"a table":         {map[string]string{"h.lines": "b/2.flac\ttwo\n1.flac,one\n"}, []string{"a/1.flac", "b/2.flac"}, []string{"one", "two"}, "", nil},
		"TRN":             {map[string]string{"h.lines": "two (2)\none (1)\n"}, []string{"1.flac", "2.flac"}, []string{"one", "two"}, "", nil},
		"their order":     {map[string]string{"h.lines": "2 two\n2 one\n"}, []string{"1.flac", "2.flac"}, []string{"2 two", "2 one"}, "", nil},
		"words as names":  {map[string]string{"h.lines": "2\n1\n"}, []string{"1.flac", "2.flac"}, []string{"2", "1"}, "", nil},
		"lines":           {map[string]string{"h.ctm": "1 1 0.0 0.5 one\n"}, []string{"a/1.flac", "b/1.flac"}, nil, "1 fits both", []string{"one", "one"}},
		"lines by folder": {map[string]string{"h.ctm": "a/1.flac 1 0.0 0.5 one\nb/1.flac 1 0.0 0.5 two\n"}, []string{"a/1.flac", "b/1.flac"}, []string{"one", "two"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			for file, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(path, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(path, file), []byte(text), 0o600))
				if filepath.Ext(file) == ".jsonl" || filepath.Ext(file) == ".ctm" || filepath.Ext(file) == ".lines" {
					path = filepath.Join(path, file)
				}
			}
			var items []datasets.Item
			for _, n := range c.names {
				items = append(items, datasets.Item{Name: n, Path: n})
			}
			e, err := Files(path, items)
			require.NoError(t, err)
			references, err := References(path, items)
			require.NoError(t, err)
			for i, it := range items {
				res, _, err := e.Transcribe(context.Background(), it)
				if c.wrong != "" {
					require.ErrorContains(t, err, c.wrong)
				} else {
					require.NoError(t, err)
					assert.Equal(t, c.texts[i], res.Segments[0].Text)
				}
				if c.shared != nil {
					res, _, err := references(it)
					require.NoError(t, err)
					assert.Equal(t, c.shared[i], res.Segments[0].Text)
				}
			}
		})
	}
}
