package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/internal/engine/textlang"
	"github.com/otograph/otograph/models/demo"
)

// The README shows an excerpt of `make demo`'s output: all its lines occur
// there in order. It has no sentence that the cascade would decode again,
// because such text depends on the processor.
func TestReadmeShowsTheDemo(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "<!-- demo output")
	require.True(t, ok)
	_, rest, _ = strings.Cut(rest, "```\n")
	shown, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)

	transcribe := func(more ...string) string {
		cmd := exec.Command(binary, append([]string{"transcribe", "--no-cascade", "testdata/conversation.flac"}, more...)...)
		cmd.Dir = ".."
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=")
		require.NoError(t, cmd.Run(), errs.String())
		return out.String()
	}
	all := transcribe()
	printed := all
	for _, line := range strings.Split(strings.TrimSpace(shown), "\n") {
		_, after, found := strings.Cut(printed, line+"\n")
		if !assert.True(t, found, "the README shows %q, and the program prints:\n%s", line, all) {
			return
		}
		printed = after
	}
	var result struct {
		Segments []struct {
			Text       string
			Confidence float64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(transcribe("--format", "json", "--enable-diarize=false", "--enable-audio-events=false")), &result))
	english, ok := demo.Models().OptimizedFor("en")
	require.True(t, ok)
	sure := 0
	for _, s := range result.Segments {
		if strings.Contains(shown, s.Text+"\n") {
			assert.Greater(t, s.Confidence, otograph.CascadeBelow, s.Text)
			assert.Empty(t, textlang.Other(s.Text, "en", english.Languages), s.Text)
			sure++
		}
	}
	assert.Equal(t, strings.Count(shown, "SPEAKER_"), sure)
}
