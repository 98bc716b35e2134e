package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program in its own folder imports the module. It builds without any native
// file, explains the remedy if the libraries are missing, and transcribes
// otherwise.
func TestEmbeddingProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	t.Parallel()
	dir := embedder(t, `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/models/demo"
)

func main() {
	p, err := otograph.Open(demo.Models())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer p.Close()
	res, err := p.Run(context.Background(), otograph.File(os.Args[1]), otograph.Options{EnableAudioEvents: new(false)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, s := range res.Segments {
		fmt.Println(s.Start, s.Speaker, s.Text)
	}
}
`)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	run := func(env ...string) (string, error) {
		cmd := exec.Command(filepath.Join(dir, "embedder"), filepath.Join(root, "testdata", "conversation.flac"))
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("OTOGRAPH_NATIVE="+t.TempDir(), "ONNXRUNTIME_LIB=")
	require.Error(t, err, "there is no library in that folder: %s", out)
	assert.Contains(t, out, "otograph native", "the error says what to do")

	lib := filepath.Join(root, "third_party", "native", "lib")
	if _, err := os.Stat(lib); err != nil {
		t.Skip("third_party/native is not there: run make setup")
	}
	out, err = run("OTOGRAPH_NATIVE=" + lib)
	require.NoError(t, err, out)
	assert.Contains(t, out, "SPEAKER_0 Good morning")
}

// embedder builds a program outside the module that imports it, and returns its
// folder; source is the file embedder.
func embedder(t *testing.T, source string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	// The module's own go.mod has the same pins; only the name is replaced.
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	text := strings.Replace(string(mod), "module github.com/otograph/otograph", "module example.com/embedder", 1)
	text += "\nrequire github.com/otograph/otograph v0.0.0\nreplace github.com/otograph/otograph => " + root + "\n"
	write("go.mod", text)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	write("go.sum", string(sum))
	write("main.go", source)
	cmd := exec.Command("go", "build", stripped, "-o", "embedder", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}
