//go:build long

package whisper

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
)

// TestGreedyTokensOfRecordings compares the tokens of every window of
// testdata's recordings with libwhisper's: with the demo model and, if
// OTOGRAPH_REAL is a folder with ggml-base.bin, with Whisper base on recordings
// of people.
func TestGreedyTokensOfRecordings(t *testing.T) {
	t.Run("demo", func(t *testing.T) { compareFolder(t, demoHalf(t), "demo") })
	t.Run("real", func(t *testing.T) {
		folder := os.Getenv("OTOGRAPH_REAL")
		if folder == "" {
			t.Skip("OTOGRAPH_REAL names no folder with ggml-base.bin")
		}
		compareFolder(t, modelFile{Path: filepath.Join(folder, "ggml-base.bin"), Model: models.Model{Name: "base"}}, "real")
	})
}

// compareFolder compares both sides on the recordings of a folder of testdata.
func compareFolder(t *testing.T, m modelFile, folder string) {
	p := openPair(t, m)
	dir := filepath.Join("..", "..", "testdata", folder)
	manifest, err := os.Open(filepath.Join(dir, "manifest.jsonl"))
	require.NoError(t, err)
	defer manifest.Close()
	windows, ties := 0, 0
	for lines := bufio.NewScanner(manifest); lines.Scan(); {
		var r struct{ File, Language string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		if r.Language == "" {
			continue // no speech
		}
		t.Run(r.File, func(t *testing.T) {
			pcm, err := audio.Open(context.Background(), audio.File(filepath.Join(dir, r.File)), audio.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, pcm.Close()) }()
			w, n := p.compare(t, pcm, r.Language)
			windows, ties = windows+w, ties+n
			p.first(t, pcm)
		})
	}
	t.Logf("%d windows, in %d of them two tokens as likely", windows, ties)
	assert.LessOrEqual(t, ties, windows/4)
}
