//go:build clients

package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClientsOpenAI runs OpenAI's Python client on three recordings: each text
// equals the text of the recording as a file, whether the client ends turns or
// the service does, every event has the client's types, and none is an error.
func TestClientsOpenAI(t *testing.T) {
	python := os.Getenv("OTOGRAPH_CLIENTS")
	require.NotEmpty(t, python, "run make test-clients")
	s := serve(t, t.TempDir(), "--demo").unlimited()
	dir := t.TempDir()
	args := []string{"clients/openai_realtime.py", s.url, s.key}
	want := map[string]string{}
	for _, name := range []string{"en_03.opus", "en_05.flac", "en_08.flac"} {
		file, err := os.ReadFile("../testdata/demo/short/" + name)
		require.NoError(t, err)
		status, text := s.speak(t, "gpt-4o-transcribe", file)
		require.Equal(t, 200, status)
		want[name] = strings.TrimSpace(text)
		path := filepath.Join(dir, name)
		resample(t, "../testdata/demo/short/"+name, "s16le", path)
		args = append(args, path)
	}
	cmd := exec.Command(python, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	checked := 0
	for line := range strings.Lines(string(out)) {
		type session struct{ Texts []string }
		var r struct {
			Recording    string
			Manual, Live session
			ServerVAD    session `json:"server_vad"`
			BadKey       []any   `json:"bad_key"`
			Conversation []any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		if r.Recording == "" {
			assert.Equal(t, []any{401.0, "invalid_api_key"}, r.BadKey)
			assert.Equal(t, []any{404.0, "model_not_found"}, r.Conversation)
			continue
		}
		for _, got := range []session{r.Manual, r.Live, r.ServerVAD} {
			assert.Equal(t, want[filepath.Base(r.Recording)], strings.Join(got.Texts, " "))
			checked++
		}
	}
	assert.Equal(t, 9, checked)
	assert.Equal(t, "We want to paint the kitchen purple.", want["en_08.flac"])
}
