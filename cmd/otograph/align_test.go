package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/align"
)

// TestAlignReadsTexts: files of common editors are read; a file without text is
// an error that names it.
func TestAlignReadsTexts(t *testing.T) {
	const cue = "1\r\n00:00:01,000 --> 00:00:02,000\r\nGrüße, 😀\r\nAnna\r\n"
	utf16 := func(s string, big bool) string {
		var out []byte
		put := func(u uint16) {
			if big {
				out = append(out, byte(u>>8), byte(u))
			} else {
				out = append(out, byte(u), byte(u>>8))
			}
		}
		put(0xfeff)
		for _, r := range s {
			if r >= 0x10000 {
				put(uint16(0xd800 + (r-0x10000)>>10))
				r = 0xdc00 + (r-0x10000)&0x3ff
			}
			put(uint16(r))
		}
		return string(out)
	}
	words := []string{"Grüße,", "😀", "Anna"}
	for _, c := range []struct {
		name, data, refused string
	}{
		{"lf.txt", "Grüße, 😀\nAnna\n", ""},
		{"bom.txt", "\ufeffGrüße, 😀\r\nAnna", ""},
		{"little.txt", utf16("Grüße, 😀\r\nAnna", false), ""},
		{"big.srt", utf16(cue, true), ""},
		{"crlf.srt", "\ufeff" + cue, ""},
		{"ours.txt", "0:00.4 – 0:10.2  SPEAKER_0  Grüße, 😀\n0:11.0 – 0:12.0  Anna\n0:12.0 – 0:13.0  sound  [Music]\n\nWARNING: cut\n", ""},
		{"whisper.txt", "[00:00.000 --> 00:01.000]  Grüße, 😀\n[1:00:01.000 --> 1:00:02.000]  Anna\n", ""},
		{"latin1.txt", "Gr\xfc\xdfe", "latin1.txt: expected a text in UTF-8"},
		{"half.txt", utf16("Anna", false)[2:], "half.txt: expected a text in UTF-8"},
		{"binary.txt", "\x00\x01\x02", "binary.txt: expected a text in UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.name)
			require.NoError(t, os.WriteFile(path, []byte(c.data), 0o600))
			_, got, _, err := readText(path)
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, words, got)
		})
	}
}

// TestAlignReadsStandardInput: one of the two arguments may be standard input.
func TestAlignReadsStandardInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(path, []byte("I hate pasta."), 0o600))
	in, err := os.Open(path)
	require.NoError(t, err)
	defer in.Close()
	before := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = before }()
	_, words, _, err := readText("-")
	require.NoError(t, err)
	assert.Equal(t, []string{"I", "hate", "pasta."}, words)
	assert.Equal(t, exitUsage, run(t.Context(), []string{"align", "-", "-"}))
	require.NoError(t, os.WriteFile(path, []byte("caf\xe9"), 0o600))
	_, err = in.Seek(0, io.SeekStart)
	require.NoError(t, err)
	_, _, _, err = readText("-")
	assert.ErrorContains(t, err, "standard input: expected a text in UTF-8")
}

// TestMisfitErrorExplainsTheCause quotes the words that the model recognizes.
func TestMisfitErrorExplainsTheCause(t *testing.T) {
	a := &otograph.Alignment{Language: "en", Score: 0.18}
	assert.Contains(t, misfitOf(a), "recognizes no words, so it cannot hear this voice or language (en)")
	a.Extra = []align.Extra{{Text: " my fellow\n"}, {Text: strings.Repeat("Americans ", 20)}}
	assert.Contains(t, misfitOf(a), `the model's text is "my fellow Americans`)
	assert.Contains(t, misfitOf(a), `…". If that is right, the text belongs to another recording; otherwise the model does not suit this voice or language (en)`)
}

// TestAlignNamesTextForms: a file of another subtitle format is refused with
// the formats that are read; SubRip is read under any name.
func TestAlignNamesTextForms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.txt")
	for name, text := range map[string]string{
		"Advanced SubStation":  "\ufeff; a comment\r\n[Script Info]\r\nTitle: made up\r\n",
		"a document of markup": `<?xml version="1.0"?><tt xmlns="http://www.w3.org/ns/ttml"/>`,
		"SubViewer (SBV)":      "0:00:00.000,0:00:02.000\r\nOne.\r\n",
		"MicroDVD":             "{0}{50}One.\n",
		"Rich Text (RTF)":      "{\\rtf1\\ansi One.}",
		"lyrics (LRC)":         "[ar:A]\n[00:12.50]One.\n",
		"JSON":                 "{\n\"text\": \"One.\"}",
		"a TextGrid":           "File type = \"ooTextFile\"\n",
		"":                     "1\n00:00:01,000 --> 00:00:02,000\n[00:12.50] {0}{1} One.\n",
		"\x00a text, no marks": "See [Script Info] and <tt>, from 0:00:00.000 on.\n",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		script, words, _, err := readText(path)
		if name == "" || name[0] == 0 {
			require.NoError(t, err)
			assert.Equal(t, name == "", script != nil, "%q", words)
			continue
		}
		assert.ErrorContains(t, err, "found "+name)
	}
}
