package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOutputIsNeverAnInput runs commands whose output is one of their inputs,
// by its name, by a link, and by the name that -o creates: each is refused
// before anything runs, and no file changes.
func TestOutputIsNeverAnInput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("out", 0o777))
	const content = "what was there before"
	files := []string{"talk.opus", "b.txt", "a.srt", "voices.json", "model.onnx", "report.opus", "report.txt", "run.jsonl", "report.csv", filepath.Join("out", "talk.srt")}
	for _, f := range files {
		require.NoError(t, os.WriteFile(f, []byte(content), 0o666))
	}
	manifest := `{"file": "talk.opus"}`
	require.NoError(t, os.WriteFile("run.jsonl", []byte(manifest), 0o666))
	require.NoError(t, os.WriteFile("list.jsonl", []byte(manifest), 0o666))
	require.NoError(t, os.Symlink("talk.opus", "link.opus"))
	require.NoError(t, os.Link("talk.opus", "hard.opus"))
	require.NoError(t, os.Link("list.jsonl", filepath.Join("out", "report.json")))
	for name, args := range map[string]string{
		"the recording":            "transcribe -f srt -o talk.opus talk.opus",
		"another way to write it":  "transcribe -f srt -o ./out/../talk.opus talk.opus",
		"a link":                   "transcribe -o link.opus talk.opus",
		"a link that is read":      "transcribe -o talk.opus link.opus",
		"a hard link":              "transcribe -o hard.opus talk.opus",
		"the name that -o makes":   "transcribe -o . b.txt",
		"another recording":        "transcribe -f srt -o out talk.opus out/talk.srt",
		"the register of voices":   "transcribe -o voices.json --voices voices.json talk.opus",
		"a model":                  "transcribe -o model.onnx --vad-model model.onnx talk.opus",
		"align: the recording":     "align talk.opus b.txt -o talk.opus",
		"align: the text":          "align talk.opus a.srt -f srt -o a.srt",
		"bench: the manifest":      "bench run.jsonl -o .",
		"bench: a linked manifest": "bench list.jsonl -o out",
		"bench: text of an item":   "bench . -o .",
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, exitUsage, run(t.Context(), strings.Fields(args)))
		})
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		if f != "run.jsonl" {
			assert.Equal(t, content, string(data), f)
		}
	}
	err := checkDistinct([]string{"link.opus"}, []string{"-", "", "talk.opus"})
	assert.EqualError(t, err, "the output link.opus is the input talk.opus: expected another file, because the output would replace it")
	assert.NoError(t, checkDistinct([]string{os.DevNull, "new", ""}, []string{os.DevNull, "talk.opus"}), "a device may be both")
}
