package test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README shows, abridged, what make demo prints: each of its lines is there, in order.
func TestReadmeShowsTheDemo(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "<!-- demo output")
	require.True(t, ok)
	_, rest, _ = strings.Cut(rest, "```\n")
	shown, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)

	cmd := exec.Command(binary, "transcribe", "testdata/conversation.flac")
	cmd.Dir = ".."
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=")
	require.NoError(t, cmd.Run(), errs.String())
	printed := out.String()
	for _, line := range strings.Split(strings.TrimSpace(shown), "\n") {
		_, after, found := strings.Cut(printed, line+"\n")
		if !assert.True(t, found, "the README shows %q, and the program prints:\n%s", line, out.String()) {
			return
		}
		printed = after
	}
}
