package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMarkers(t *testing.T) {
	for text, want := range map[string]string{
		"shown tells whether a text is public":                `"reports whether", "returns"`,
		"Duration gives the length in seconds":                `"returns", "creates"`,
		"Of more, a sample is clustered":                      `subject, verb, object`,
		"Those that expire first come first":                  `a noun as the subject`,
		"that it is gone is no error":                         `"is not an error"`,
		"so many bytes":                                       `a number, or "many"`,
		"a failure for want of memory":                        `"because there is no"`,
		"it lies beside the model":                            `"next to"`,
		"expected , or } behind a value":                      `"after a"`,
		"a store of its own":                                  `"its", "separate"`,
		"several workers at once":                             `"simultaneously", "immediately"`,
		"the person who is to read it":                        `"should", "the person who"`,
		"Close lets the store go":                             `"closes", "continues", "starts"`,
		"one clause; a second; a third; and a fourth of them": `three sentences`,
		"the recogniser of the standard tier":                 `American spelling`,
	} {
		found := markersIn(text)
		require.NotEmpty(t, found, text)
		assert.Equal(t, want, found[0].marker, text)
	}
	for _, text := range []string{
		"Duration returns the length in seconds.",
		"Longer recordings are clustered on a sample of this size.",
		"Deleting a missing file is not an error.",
		"What is a worker? A process that transcribes.",
	} {
		assert.Empty(t, markersIn(text), text)
	}
}

// TestRead checks the texts that are read from a file, and their lines.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	blocks, err := read(write("a.go", "package a\n\n// F is a function\n// of five words.\nfunc F() string { return \"three words here\" + `SELECT a FROM b` }\n\n// short\ntype T struct { A int `json:\"a b c\"` }\n"))
	require.NoError(t, err)
	require.Len(t, blocks, 2)
	assert.Equal(t, block{goComments, filepath.Join(dir, "a.go"), 3, "F is a function of five words."}, blocks[0])
	assert.Equal(t, block{shown, filepath.Join(dir, "a.go"), 5, "three words here"}, blocks[1])

	blocks, err = read(write("a.md", "A line of text.\n\n```\nsome code in here\n```\n\n    code with an indent\nRun `so many words` now please.\n"))
	require.NoError(t, err)
	require.Len(t, blocks, 2)
	assert.Equal(t, "Run `…` now please.", blocks[1].text)

	blocks, err = read(write("a.ts", "const a = \"Transcribe this recording now\"; // a comment of words\n"))
	require.NoError(t, err)
	require.Len(t, blocks, 2)
}
