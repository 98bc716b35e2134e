package subtitle_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

// TestWriteSupportsEveryFormat: each format has an extension, a media type and
// a nonempty file; a result that lacks data which the format requires is an
// error.
func TestWriteSupportsEveryFormat(t *testing.T) {
	full := &spec.Result{
		AudioDuration: 2, Ran: spec.Capabilities{ASR: true, Diarize: true},
		Segments: []spec.Segment{{
			Start: 0.5, End: 1.5, Text: "hello", Speaker: "SPEAKER_0",
			Words: []spec.Word{{Word: "hello", Start: 0.5, End: 1.5, Probability: 0.9}},
		}},
		DiarizeSegments: []spec.Turn{{Start: 0.5, End: 1.5, Speaker: "SPEAKER_0"}},
	}
	for _, f := range subtitle.Formats() {
		assert.NotEmpty(t, f.Extension(), f)
		assert.NotEmpty(t, f.MediaType(), f)
		var out bytes.Buffer
		require.NoError(t, subtitle.Write(&out, f, "a.b.wav", time.Unix(0, 0).UTC(), full), f)
		assert.NotZero(t, out.Len(), f)
	}
	const cut = "the recording is cut"
	full.Warnings = []spec.Warning{{Option: spec.WarnAudio, Reason: cut}, {Option: "hotwords", Reason: "no effect"}}
	for _, f := range []subtitle.Format{subtitle.FormatVTT, subtitle.FormatCTM, subtitle.FormatRTTM, subtitle.FormatMarkdown} {
		var out bytes.Buffer
		require.NoError(t, subtitle.Write(&out, f, "a.b.wav", time.Unix(0, 0).UTC(), full), f)
		assert.Contains(t, out.String(), cut, f)
		assert.NotContains(t, out.String(), "no effect", f)
	}
	full.Warnings = nil
	full.Segments[0].Words[0].Interpolated = true
	for _, f := range subtitle.Formats() {
		var out bytes.Buffer
		require.NoError(t, subtitle.Write(&out, f, "a.b.wav", time.Unix(0, 0).UTC(), full), f)
		comments := f == subtitle.FormatVTT || f == subtitle.FormatCTM
		assert.Equal(t, comments, strings.Contains(out.String(), "Some word times are estimated by letters, not measured."), f)
	}
	bare := &spec.Result{Ran: spec.Capabilities{ASR: true}, Segments: []spec.Segment{{Text: "hello", End: 1}}}
	for f, want := range map[subtitle.Format]error{
		subtitle.FormatCTM: subtitle.ErrNoWordTimes, subtitle.FormatRTTM: subtitle.ErrNoTurns, "pdf": subtitle.ErrFormat,
	} {
		var out bytes.Buffer
		require.ErrorIs(t, subtitle.Write(&out, f, "a.wav", time.Time{}, bare), want)
		assert.Zero(t, out.Len(), "%s: nothing is written before it is known that it can be", f)
	}
	assert.Empty(t, subtitle.Format("pdf").MediaType()+subtitle.Format("pdf").Extension())
}

// TestWriteFile: the extension selects the format; an incomplete file is
// removed, and the error names it.
func TestWriteFile(t *testing.T) {
	bare := &spec.Result{Ran: spec.Capabilities{ASR: true}, Segments: []spec.Segment{{Text: "hello", End: 1}}}
	dir := t.TempDir()
	for _, f := range []string{"a.SRT", "a.labels.txt", "a.TextGrid"} {
		file := filepath.Join(dir, f)
		require.NoError(t, subtitle.WriteFile(file, bare))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(text), "hello", f)
	}
	for f, want := range map[string]error{"a.ctm": subtitle.ErrNoWordTimes, "a.pdf": subtitle.ErrFormat} {
		file := filepath.Join(dir, f)
		err := subtitle.WriteFile(file, bare)
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, file)
		assert.NoFileExists(t, file)
	}
}
