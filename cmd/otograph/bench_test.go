package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench"
)

// TestUnusedFilesOfABenchmark: files of a folder that are neither recordings
// nor references are counted.
func TestUnusedFilesOfABenchmark(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.opus": "sound", "a.txt": "I hate pasta.", "a.rttm": "", "more/b.wav": "sound",
		"c.txt": "of no recording", "more/cover.jpg": "", ".git/config": "",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	items, err := bench.Load(dir)
	require.NoError(t, err)
	require.Len(t, items, 2)
	n, err := unused(dir, items)
	require.NoError(t, err)
	assert.Equal(t, 2, n, "c.txt and cover.jpg")
	manifest := filepath.Join(dir, "rows.jsonl")
	require.NoError(t, os.WriteFile(manifest, []byte(`{"file":"a.opus"}`), 0o666))
	n, err = unused(manifest, items)
	require.NoError(t, err)
	assert.Zero(t, n, "a manifest names its files")

	require.NoError(t, os.WriteFile(filepath.Join(dir, benchManifest), []byte(`{"file":"more/b.wav","text":"good morning"}`), 0o666))
	items, err = bench.Load(dir)
	require.NoError(t, err)
	require.Len(t, items, 1, "the manifest of a folder")
	assert.Equal(t, "good morning", *items[0].Text)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, folder := range []string{dir, link} {
		n, err = unused(folder, items)
		require.NoError(t, err)
		assert.Zero(t, n, folder)
	}
}

// TestBenchWithoutAnyResultFails: a system that no recording was measured with is
// an error, after the report with the reasons.
func TestBenchWithoutAnyResultFails(t *testing.T) {
	dir := t.TempDir()
	manifest := filepath.Join(dir, "m.jsonl")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o700))
	require.NoError(t, os.WriteFile(manifest, []byte(`{"file":"a.wav","text":"one"}{"file":"b.wav","text":"one"}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one"), 0o600))
	for folder, want := range map[string]error{".": nil, "empty": errReported} {
		c := benchRunCmd{Manifest: manifest, Repeat: 1, Normalizer: "words", Quiet: true, Output: filepath.Join(dir, "report", folder)}
		c.Hyp, c.AtOnce, c.Timeout = []string{"h=" + filepath.Join(dir, folder)}, 1, time.Minute
		require.ErrorIs(t, c.Run(t.Context()), want)
		assert.FileExists(t, filepath.Join(c.Output, "report.txt"))
	}
}
