package test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
)

// TestModelsByName: twenty requests (seven in the short form) that alternate
// between three models are all served by a worker with room for two, which
// unloads and loads them in turn.
func TestModelsByName(t *testing.T) {
	t.Parallel()
	whisper := demoFiles(t)[models.RoleStandard]
	folder, names := t.TempDir(), []string{"one", "two", "three"}
	for i, name := range names {
		file := filepath.Join(t.TempDir(), name+".bin")
		other := bytes.Clone(whisper)
		other[len(other)-1] ^= byte(i) // another model, by its hash
		require.NoError(t, os.WriteFile(file, other, 0o600))
		out, err := exec.Command(binary, "models", "import", "--models", folder, file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	room := fmt.Sprint(5 * len(whisper) / 2 >> 20)
	s := serve(t, t.TempDir(), "--models", folder, "--model-memory", room, "--log-level", "debug")
	require.Eventually(t, func() bool {
		status, _ := s.call("GET", "/models/three", nil)
		return status == http.StatusOK
	}, patience, 100*time.Millisecond, "the worker reports its models")
	speech := clip(t, 0, 2)
	requests := 20
	if testing.Short() {
		requests = 4
	}
	var served sync.Map
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			status, answer := s.speak(t, names[i%len(names)], speech)
			if !assert.Equal(t, http.StatusOK, status, answer) {
				return
			}
			served.Store(i, answer)
		})
	}
	wg.Wait()
	first, ok := served.Load(0)
	require.True(t, ok)
	for i := range requests {
		text, _ := served.Load(i)
		assert.Equal(t, first, text, "request %d: the models differ in nothing that matters", i)
	}
	unloaded := strings.Count(s.logged(), "a model was unloaded")
	t.Logf("%d requests over three models with room for two: %d times a model made room", requests, unloaded)
	assert.Positive(t, unloaded)
}

// speak sends a recording to the endpoint of OpenAI's interface, for a model.
func (s *server) speak(t *testing.T, model string, audio []byte) (status int, answer string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	require.NoError(t, form.WriteField("model", model))
	require.NoError(t, form.WriteField("response_format", "text"))
	part, err := form.CreateFormFile("file", "clip.wav")
	require.NoError(t, err)
	_, _ = part.Write(audio)
	require.NoError(t, form.Close())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/audio/transcriptions", &body)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", form.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}
