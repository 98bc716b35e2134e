//go:build clients

package test

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// resampled writes the recordings with 24 kHz in a format of ffmpeg.
func resampled(t *testing.T, format string) (names, texts []string) {
	t.Helper()
	files, texts := waves(t)
	for _, file := range files {
		name := strings.TrimSuffix(file, ".wav") + ".24k." + format
		resample(t, file, format, name)
		names = append(names, name)
	}
	return names, texts
}

// resample writes a recording with 24 kHz, mono, in a format of ffmpeg.
func resample(t *testing.T, from, format, to string) {
	t.Helper()
	out, err := exec.Command("ffmpeg", "-v", "error", "-i", from, "-ar", "24000", "-ac", "1", "-f", format, to).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestClientsOfAgents runs the speech-to-text services of LiveKit and Pipecat for
// OpenAI and Deepgram, unchanged: each gets the text of three recordings.
func TestClientsOfAgents(t *testing.T) {
	s := serve(t, t.TempDir(), "--demo").unlimited()
	files, texts := resampled(t, "wav")
	args := []string{strings.TrimSuffix(s.url, "/v1"), s.key}
	for i, file := range files {
		args = append(args, fmt.Sprintf("%s=%d", file, len(strings.Fields(texts[i]))))
	}
	type answer struct {
		Text   string
		Errors []string
	}
	type all struct {
		LiveKitOpenAI   answer `json:"livekit_openai"`
		LiveKitDeepgram answer `json:"livekit_deepgram"`
		PipecatOpenAI   answer `json:"pipecat_openai"`
		PipecatDeepgram answer `json:"pipecat_deepgram"`
	}
	for i, a := range program[all](t, "agents.py", args...) {
		for _, got := range []answer{a.LiveKitOpenAI, a.LiveKitDeepgram, a.PipecatOpenAI, a.PipecatDeepgram} {
			assert.Equal(t, texts[i], got.Text)
			assert.Empty(t, got.Errors)
		}
	}
}

// TestClientsOfJavaScript runs the JavaScript clients of OpenAI (over TLS, with
// an authority of the test), Vercel and Deepgram, unchanged: each gets the text
// of three recordings and no error.
func TestClientsOfJavaScript(t *testing.T) {
	folder := os.Getenv("OTOGRAPH_NODE_CLIENTS")
	require.NotEmpty(t, folder, "run make test-clients")
	s := serve(t, t.TempDir(), "--demo").unlimited()
	plain, err := url.Parse(strings.TrimSuffix(s.url, "/v1"))
	require.NoError(t, err)
	secure := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(plain))
	defer secure.Close()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	script, err := os.ReadFile("clients/javascript.mjs")
	require.NoError(t, err)
	beside := filepath.Join(folder, "javascript.mjs") // where it has its packages
	require.NoError(t, os.WriteFile(beside, script, 0o600))
	files, texts := resampled(t, "s16le")
	cmd := exec.Command("node", append([]string{beside, plain.String(), secure.URL, s.key}, files...)...)
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+authority)
	type all struct {
		Texts map[string]struct{ Text string }
	}
	for i, a := range printed[all](t, cmd) {
		assert.Len(t, a.Texts, 5)
		for client, got := range a.Texts {
			assert.Equal(t, texts[i], got.Text, client)
		}
	}
}

// TestClientsOfGo runs OpenAI's Go client.
func TestClientsOfGo(t *testing.T) {
	s := serve(t, t.TempDir(), "--demo").unlimited()
	files, texts := resampled(t, "s16le")
	args := []string{"run", "-C", "../tools", "./openairealtime", strings.TrimSuffix(s.url, "/v1"), s.key}
	assert.Equal(t, texts, printed[string](t, exec.Command("go", append(args, files...)...)))
}
