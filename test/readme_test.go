package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
)

// readmeFrame is a program that contains README's two programs in place of %1
// and %2. It prints how the service answers a request with its first key.
const readmeFrame = `package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/service/engine"
	"github.com/otograph/otograph/subtitle"
)

func embed(ctx context.Context) error {
	%1
	return err
}

func mount(ctx context.Context) (string, error) {
	%2
	return key, err
}

func main() {
	if err := embed(context.Background()); err != nil {
		log.Fatal(err)
	}
	key, err := mount(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("GET", "http://localhost/v1/tasks", nil)
	r.Header.Set("X-Api-Key", key)
	answer := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(answer, r)
	fmt.Print(answer.Code)
}
`

// TestReadmePrograms builds README's programs unchanged, and runs them with the
// demonstration recognizer: the first writes subtitles, the second answers a
// request with the key that it creates.
func TestReadmePrograms(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	programs := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	require.Len(t, programs, 2)
	source := regexp.MustCompile("%[12]").ReplaceAllFunc([]byte(readmeFrame), func(mark []byte) []byte { return programs[mark[1]-'1'][1] })
	dir := t.TempDir()
	write := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	program := asCommand(t, string(source))

	write("models/demo.bin", demoFiles(t)[models.RoleStandard])
	sound, err := os.ReadFile(filepath.Join(root, "testdata", "demo", "short", "en_00.flac"))
	require.NoError(t, err)
	write("meeting.m4a", sound)
	run := exec.Command(program)
	run.Dir, run.Env = dir, append(os.Environ(), "OTOGRAPH_MODELS="+filepath.Join(dir, "models"), "OTOGRAPH_DATABASE=", "OTOGRAPH_BLOBS=")
	status, err := run.Output()
	require.NoError(t, err, "%s", status)
	assert.Equal(t, "200", string(status))
	subtitles, err := os.ReadFile(filepath.Join(dir, "meeting.srt"))
	require.NoError(t, err)
	assert.Contains(t, string(subtitles), "-->")
}

// asCommand builds a program as if it were a command of the module, so that no
// package is compiled again, and returns its path.
func asCommand(t *testing.T, source string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	file, overlay, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "cmd", "program", "main.go"): file}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	out, err := exec.Command("go", "build", stripped, "-overlay", overlay, "-o", program, "../cmd/program").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
