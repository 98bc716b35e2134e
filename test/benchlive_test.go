package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBenchLive: the models and a server with OpenAI's realtime interface, which
// here is the service with the same models, have the same figures. A server that
// is not there is an error, and the others are measured.
func TestBenchLive(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--demo")
	sound, err := filepath.Abs("../testdata/demo/short/en_08.flac")
	require.NoError(t, err)
	manifest := filepath.Join(t.TempDir(), "manifest.jsonl")
	require.NoError(t, os.WriteFile(manifest, fmt.Appendf(nil, `{"file": %q, "text": "We want to paint the kitchen purple.", "language": "en"}`, sound), 0o600))
	address := "ws" + strings.TrimPrefix(s.url, "http") + "/realtime?intent=transcription&model=whisper-1"
	cmd := exec.Command(binary, "bench", "live", manifest, "--demo", "--quiet", "--known-language", "--sessions", "1", "--format", "json",
		"--system", "gone=ws://127.0.0.1:1", "--system", "the-door="+address)
	cmd.Env = append(os.Environ(), "THE_DOOR_API_KEY="+s.key)
	out, err := cmd.Output()
	require.Error(t, err, "a server is gone")
	type counted struct{ Count float64 }
	type errorCounts struct{ Reference, Substitutions, Insertions, Deletions int }
	type report struct {
		System string
		Levels []struct {
			After   counted `json:"final_after_stop"`
			Interim counted `json:"word_shown_after_its_end"`
			Errors  errorCounts
		}
	}
	var reports []report
	for line := range bytes.Lines(out) {
		var r report
		require.NoError(t, json.Unmarshal(line, &r), "%s", out)
		reports = append(reports, r)
	}
	require.Len(t, reports, 2)
	for i, name := range []string{"otograph", "the-door"} {
		assert.Equal(t, name, reports[i].System)
		require.Len(t, reports[i].Levels, 1)
		l := reports[i].Levels[0]
		assert.Positive(t, l.After.Count)
		assert.Positive(t, l.Interim.Count)
		assert.Equal(t, reports[0].Levels[0].Errors, l.Errors, "the same models")
		assert.Equal(t, 7, l.Errors.Reference)
	}

	cmd = exec.Command(binary, "bench", "live", manifest, "--demo", "--system", "ws://127.0.0.1:1")
	out, err = cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "expected NAME=URL")
}
