package subtitle

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// conversation covers the hard cases of the formats: two speakers, long
// segments with and without word times, sounds, Chinese, markup in the text,
// and more than a hundred hours.
var conversation = []Cue{
	{Start: 0.32, End: 2.1, Speaker: "SPEAKER_0", Text: "Good morning, and welcome."},
	{Start: 0, End: 12.5, Event: true, Text: "Music"},
	{
		Start: 2.4, End: 12.9, Speaker: "SPEAKER_1",
		Text: "Thank you. I would like to begin with the figures of the last quarter, which came in on Monday, and then turn to the questions.",
		Words: []spec.Word{
			{Word: " Thank", Start: 2.4, End: 2.7, Probability: 0.9},
			{Word: " you.", Start: 2.7, End: 3.0, Probability: 0.9},
			{Word: " I", Start: 3.6, End: 3.7, Probability: 0.9},
			{Word: " would", Start: 3.7, End: 3.9, Probability: 0.9},
			{Word: " like", Start: 3.9, End: 4.1, Probability: 0.9},
			{Word: " to", Start: 4.1, End: 4.2, Probability: 0.9},
			{Word: " begin", Start: 4.2, End: 4.6, Probability: 0.9},
			{Word: " with", Start: 4.6, End: 4.8, Probability: 0.9},
			{Word: " the", Start: 4.8, End: 4.9, Probability: 0.9},
			{Word: " figures", Start: 4.9, End: 5.4, Probability: 0.9},
			{Word: " of", Start: 5.4, End: 5.5, Probability: 0.9},
			{Word: " the", Start: 5.5, End: 5.6, Probability: 0.9},
			{Word: " last", Start: 5.6, End: 6.0, Probability: 0.9},
			{Word: " quarter,", Start: 6.0, End: 6.6, Probability: 0.9},
			{Word: " which", Start: 7.1, End: 7.4, Probability: 0.9},
			{Word: " came", Start: 7.4, End: 7.7, Probability: 0.9},
			{Word: " in", Start: 7.7, End: 7.8, Probability: 0.9},
			{Word: " on", Start: 7.8, End: 7.9, Probability: 0.9},
			{Word: " Monday,", Start: 7.9, End: 8.5, Probability: 0.9},
			{Word: " and", Start: 9.0, End: 9.2, Probability: 0.9},
			{Word: " then", Start: 9.2, End: 9.5, Probability: 0.9},
			{Word: " turn", Start: 9.5, End: 9.9, Probability: 0.9},
			{Word: " to", Start: 9.9, End: 10.0, Probability: 0.9},
			{Word: " the", Start: 10.0, End: 10.1, Probability: 0.9},
			{Word: " questions.", Start: 10.1, End: 12.9, Probability: 0.9},
		},
	},
	{Start: 13, End: 21, Speaker: "SPEAKER_0", Text: "A long remark that has no word times at all has to be shared out over its span by the length of its text alone."},
	{Start: 22, End: 30, Speaker: "SPEAKER_1", Text: "我们先来看一下上个季度的数字，这些数字是星期一才收到的，然后再回答大家的问题。请问有人听得见吗？好的，那么我们开始吧。"},
	{Start: 30.5, End: 32, Speaker: "R&D <lab>", Text: "If a < b && b > c --> then <i>stop</i> {\\an8}here."},
	{Start: 33, End: 33, Event: true, Text: "[Door]"},
	{Start: 100*3600 + 59*60 + 59.9996, End: 363602, Text: "Still\nrunning\tafter  a hundred hours."},
	{Start: 363603, End: 363604, Text: "  \n "},
}

var turns = []spec.Turn{
	{Start: 2.4, End: 12.9, Speaker: "SPEAKER_1"},
	{Start: 0.32, End: 2.1, Speaker: "SPEAKER_0"},
	{Start: 13, End: 13.0001, Speaker: "SPEAKER_0"},
	{Start: 13, End: 21.12345, Speaker: "Ms. Jane Doe"},
	{Start: 360000, End: 360002, Speaker: ""},
}

func TestFormatsEqualGoldenFiles(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"conversation.srt":  func(w io.Writer) error { return SRT(w, conversation, Options{}) },
		"conversation.vtt":  func(w io.Writer) error { return VTT(w, conversation, Options{}) },
		"conversation.tsv":  func(w io.Writer) error { return writeTSV(w, conversation) },
		"conversation.rttm": func(w io.Writer) error { return writeRTTM(w, "board meeting", turns) },
		"narrow-nospeakers.srt": func(w io.Writer) error {
			return SRT(w, conversation, Options{MaxColumns: 24, MaxLines: 3, NoSpeakers: true})
		},
		"conversation.md":       func(w io.Writer) error { return writeMarkdown(w, "Board_meeting *1*", conversation) },
		"conversation.TextGrid": func(w io.Writer) error { return TextGrid(w, 40, conversation) },
		"conversation.eaf": func(w io.Writer) error {
			return writeEAF(w, "board meeting.wav", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), conversation)
		},
		"conversation.labels": func(w io.Writer) error { return writeLabels(w, conversation) },
		"conversation.ctm":    func(w io.Writer) error { return writeCTM(w, "board meeting", conversation[2:3]) },
		"empty.TextGrid":      func(w io.Writer) error { return TextGrid(w, 0, nil) },
		"empty.vtt":           func(w io.Writer) error { return VTT(w, nil, Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			require.NoError(t, write(&got))
			path := filepath.Join("testdata", name)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "run with -update to write it")
			assert.Equal(t, string(want), got.String())
		})
	}
}

// full is a writer that accepts the given number of bytes and then fails.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"srt":  func(w io.Writer) error { return SRT(w, conversation, Options{}) },
		"vtt":  func(w io.Writer) error { return VTT(w, conversation, Options{}) },
		"tsv":  func(w io.Writer) error { return writeTSV(w, conversation) },
		"rttm": func(w io.Writer) error { return writeRTTM(w, "f", turns) },
		"md":   func(w io.Writer) error { return writeMarkdown(w, "f", conversation) },
		"docx": func(w io.Writer) error { return writeDOCX(w, "f", conversation) },
		"grid": func(w io.Writer) error { return TextGrid(w, 1, conversation) },
		"eaf":  func(w io.Writer) error { return writeEAF(w, "f", time.Time{}, conversation) },
		"lab":  func(w io.Writer) error { return writeLabels(w, conversation) },
		"ctm":  func(w io.Writer) error { return writeCTM(w, "f", conversation[2:3]) },
	} {
		limit := full(20)
		require.ErrorIs(t, write(&limit), io.ErrShortWrite, name)
	}
}

func TestInputIsUnchanged(t *testing.T) {
	cues := []Cue{{Start: 5, End: 4, Text: " b\n"}, {Start: 1, End: 9, Text: "a"}}
	before := append([]Cue(nil), cues...)
	require.NoError(t, SRT(io.Discard, cues, Options{}))
	assert.Equal(t, before, cues)
	moved := append([]spec.Turn(nil), turns...)
	require.NoError(t, writeRTTM(io.Discard, "f", moved))
	assert.Equal(t, turns, moved)
}
