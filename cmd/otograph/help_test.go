package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHelpIsShort: the help lists eight commands, `help all` at most 35.
func TestHelpIsShort(t *testing.T) {
	help := func(words ...string) string {
		var out bytes.Buffer
		args, all := helpArgs(words)
		parser := newParser(t.Context(), all)
		parser.Stdout, parser.Exit = &out, func(int) {}
		_, _ = parser.Parse(args)
		return out.String()
	}
	lines := func(text string) int { return strings.Count(text, "\n  ") }
	first, all := help(), help("help", "all")
	assert.Equal(t, first, help("help"))
	for _, name := range firstCommands {
		assert.Contains(t, first, "\n  "+name+"  ")
	}
	assert.Equal(t, len(firstCommands), lines(first[strings.Index(first, "Commands:"):]))
	assert.NotContains(t, first, "migrate")
	require.Contains(t, all, "migrate")
	leaves := newParser(t.Context(), true).Model.Leaves(true)
	assert.LessOrEqual(t, len(leaves), 35)
	for _, leaf := range leaves {
		assert.Contains(t, all, leaf.Path())
	}
	assert.Contains(t, help("help", "queue", "pause"), "--undo")
}

// TestUnknownFlagsAreExplained: for a flag of another program, the error
// suggests the flag whose name contains its name.
func TestUnknownFlagsAreExplained(t *testing.T) {
	for flag, want := range map[string]string{
		"--language": `; did you mean "asr-language"?`, "--output-format": `; did you mean "format"?`, "--verbose": "", "--model": "",
	} {
		_, err := newParser(t.Context(), false).Parse([]string{"transcribe", "a.wav", flag, "x"})
		require.ErrorContains(t, err, "unknown flag "+flag)
		assert.Equal(t, want, likelyFlag(err), flag)
	}
}
