package subtitle

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// TestRightToLeftKeepsItsDirection behind a name or a time, in every format
// that has one before the text.
func TestRightToLeftKeepsItsDirection(t *testing.T) {
	const hebrew, arabic = "אנחנו כאן היום, NASA אמרה.", "هذا تقرير من NASA، صدر عام 2024!"
	r := &spec.Result{Segments: []spec.Segment{
		{Start: 1, End: 4, Speaker: "SPEAKER_0", Text: hebrew},
		{Start: 4, End: 7, Speaker: "SPEAKER_1", Text: arabic},
		{Start: 7, End: 9, Speaker: "SPEAKER_0", Text: "NASA אמרה."},
		{Start: 9, End: 11, Speaker: "SPEAKER_0", Text: hebrew},
	}}
	write := func(f Format, o Options) string {
		var b bytes.Buffer
		require.NoError(t, o.Write(&b, f, "a.wav", time.Time{}, r))
		return b.String()
	}
	srt := write(FormatSRT, Options{})
	for _, line := range []string{"[SPEAKER_0] \u2067" + hebrew + "\u2069\n", "[SPEAKER_1] \u2067هذا تقرير\u2069\n\u2067من NASA، صدر عام 2024!\u2069\n", "[SPEAKER_0] NASA אמרה.\n", "\n\u2067" + hebrew + "\u2069\n"} {
		assert.Contains(t, srt, line)
	}
	narrow := write(FormatSRT, Options{MaxColumns: 24})
	assert.Equal(t, strings.Count(narrow, "\u2067"), strings.Count(narrow, "\u2069\n"), "every line")
	assert.NotContains(t, write(FormatSRT, Options{NoSpeakers: true}), "\u2067", "the line begins with the text")
	assert.Contains(t, write(FormatMarkdown, Options{}), "(0:01) \u2067"+hebrew+"\u2069\n")
	pack := write(FormatDOCX, Options{})
	z, err := zip.NewReader(strings.NewReader(pack), int64(len(pack)))
	require.NoError(t, err)
	f, err := z.Open("word/document.xml")
	require.NoError(t, err)
	document, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(document), "<w:pPr><w:bidi/></w:pPr>"), "%s", document)
	assert.Contains(t, string(document), `<w:rtl/></w:rPr><w:t xml:space="preserve">`+arabic)
}

// TestForeignWordsKeepDirection: the lines of a text from right to left that
// begin with a word from left to right, without a name before them, are isolated.
func TestForeignWordsKeepDirection(t *testing.T) {
	r := &spec.Result{Segments: []spec.Segment{{Start: 1, End: 6, Text: "NASA הודיעה היום על תכנית חדשה לשיגור לוויינים (חדשים) בשנה הבאה."}}}
	for f, times := range map[Format]string{FormatSRT: "00:00:01,000 --> 00:00:06,000\n", FormatVTT: "00:00:01.000 --> 00:00:06.000\n"} {
		var b bytes.Buffer
		require.NoError(t, Write(&b, f, "a.wav", time.Time{}, r))
		_, text, _ := strings.Cut(b.String(), times)
		first, second, _ := strings.Cut(text, "\n")
		assert.True(t, strings.HasPrefix(first, "\u2067NASA") && strings.HasSuffix(first, "\u2069"), "%q", first)
		assert.NotContains(t, second, "\u2067")
	}
}

// TestDocumentsBeginWithWarnings, because their readers may not reach the end.
func TestDocumentsBeginWithWarnings(t *testing.T) {
	r := &spec.Result{
		Warnings: []spec.Warning{{Option: spec.WarnAudio, Reason: "the end is missing"}, {Option: spec.WarnAudio, Reason: "two tracks"}},
		Segments: []spec.Segment{{Start: 0, End: 4, Text: "Hello."}},
	}
	var b bytes.Buffer
	require.NoError(t, Write(&b, FormatMarkdown, "a.wav", time.Time{}, r))
	assert.Equal(t, "# a\n\n(0:00) *\\[the end is missing\\]*\n\n(0:00) *\\[two tracks\\]*\n\n(0:00) Hello.\n", b.String())
}
