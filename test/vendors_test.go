//go:build clients

package test

import (
	"bytes"
	endian "encoding/binary"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// spokenFiles are recordings with their texts.
var spokenFiles = map[string]string{
	"en_00": "Can we meet next month?", "en_01": "It will be sunny tomorrow at three fifteen.", "en_05": "He is reading a new book about China.",
}

// waves writes the recordings as files that clients read themselves.
func waves(t *testing.T) (names, texts []string) {
	t.Helper()
	for name, text := range spokenFiles {
		samples := raw(t, "../testdata/demo/short/"+name+".flac")
		var out bytes.Buffer
		out.WriteString("RIFF")
		for _, part := range []any{uint32(36 + len(samples)), []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(16000), uint32(32000), uint16(2), uint16(16), []byte("data"), uint32(len(samples)), samples} {
			require.NoError(t, endian.Write(&out, endian.LittleEndian, part))
		}
		path := filepath.Join(t.TempDir(), name+".wav")
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
		names, texts = append(names, path), append(texts, text)
	}
	return names, texts
}

// program runs a client of test/clients and returns the values that it prints.
// OTOGRAPH_CLIENTS is a Python that has the clients.
func program[T any](t *testing.T, script string, args ...string) []T {
	t.Helper()
	return printed[T](t, exec.Command(os.Getenv("OTOGRAPH_CLIENTS"), append([]string{"-P", "clients/" + script}, args...)...))
}

// printed runs a client and returns the values that it prints, one per recording.
func printed[T any](t *testing.T, cmd *exec.Cmd) (out []T) {
	t.Helper()
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		t.Log(strings.TrimSpace(line))
		var v T
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		out = append(out, v)
	}
	require.Len(t, out, len(spokenFiles))
	return out
}

// TestClientsOfVendors runs the official clients of Deepgram, AssemblyAI and
// Wyoming, unchanged: each gets the text of three recordings and no error.
func TestClientsOfVendors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	wyoming := l.Addr().String()
	require.NoError(t, l.Close())
	s := serve(t, t.TempDir(), "--demo", "--wyoming", wyoming).unlimited()
	url := strings.TrimSuffix(s.url, "/v1")
	files, texts := waves(t)
	type answer struct {
		Text, Chunks string
		Kinds        []string
		Events       []string
		Errors       []string
		Words        int
		Utterances   int
		Sequence     []int
		Finalized    bool
		Terminated   bool
	}

	t.Run("deepgram", func(t *testing.T) {
		type all struct{ Live, Flux, Recording answer }
		for i, a := range program[all](t, "deepgram.py", append([]string{url, s.key}, files...)...) {
			words := len(strings.Fields(texts[i]))
			assert.Equal(t, []any{texts[i], words, true}, []any{a.Live.Text, a.Live.Words, a.Live.Finalized})
			assert.Contains(t, a.Live.Kinds, "SpeechStarted")
			assert.Contains(t, a.Live.Kinds, "ConfigureSuccess")
			assert.Equal(t, "Metadata", a.Live.Kinds[len(a.Live.Kinds)-1])
			assert.Equal(t, texts[i], a.Flux.Text)
			assert.Equal(t, []string{"Connected", "ConfigureSuccess"}, a.Flux.Kinds)
			assert.Equal(t, []string{"StartOfTurn", "EndOfTurn"}, []string{a.Flux.Events[0], a.Flux.Events[len(a.Flux.Events)-1]})
			for n, sequence := range a.Flux.Sequence {
				assert.Equal(t, n, sequence)
			}
			assert.Equal(t, []any{texts[i], words, 1}, []any{a.Recording.Text, a.Recording.Words, a.Recording.Utterances})
			assert.Empty(t, append(a.Live.Errors, a.Flux.Errors...))
		}
	})
	t.Run("assemblyai", func(t *testing.T) {
		for i, a := range program[answer](t, "assemblyai.py", append([]string{url, s.key}, files...)...) {
			assert.Equal(t, []any{texts[i], len(strings.Fields(texts[i])), true}, []any{a.Text, a.Words, a.Terminated})
			assert.Equal(t, []string{"Begin", "Termination"}, []string{a.Kinds[0], a.Kinds[len(a.Kinds)-1]})
			assert.Empty(t, a.Errors)
		}
	})
	t.Run("wyoming", func(t *testing.T) {
		for i, a := range program[answer](t, "wyoming.py", append([]string{"tcp://" + wyoming}, files...)...) {
			assert.Equal(t, []string{texts[i], texts[i]}, []string{a.Text, a.Chunks})
			assert.Equal(t, []string{"transcript", "transcript-stop"}, a.Kinds[len(a.Kinds)-2:])
			assert.NotContains(t, a.Kinds, "error")
		}
	})
}
