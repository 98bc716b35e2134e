package httpserver

import (
	"cmp"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/outside"
)

// TestOpenAIGoClient calls the service with the official Go client, unchanged.
func TestOpenAIGoClient(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes to compile the client: make test-extent")
	}
	w := newWorld(t)
	w.work()
	_, broke := w.newAccount("broke", "0")
	out, err := outside.Run("openaiclient", "-url", w.url, "-key", w.key, "-broke", broke)
	require.NoError(t, err)
	t.Log(out)
}

// TestOpenAIPythonClient calls the service with the official Python client,
// unchanged, and with its strict validation.
func TestOpenAIPythonClient(t *testing.T) {
	python := cmp.Or(os.Getenv("OTOGRAPH_PYTHON"), "python3")
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import openai.types.audio.transcription_language").CombinedOutput(); err != nil {
		t.Skipf("%s has no openai of 2026 (pip install -U openai, or name another with OTOGRAPH_PYTHON): %v %s", python, err, out)
	}
	w := newWorld(t)
	w.work()
	_, broke := w.newAccount("broke", "0")
	out, err := exec.CommandContext(t.Context(), python, "testdata/openaiclient.py", w.url, w.key, broke).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}
