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
)

var update = flag.Bool("update", false, "rewrite the golden files")

// conversation has what the formats must cope with: two speakers, a long
// segment with word times, one without, sounds, Chinese, markup in the text, and
// more than a hundred hours.
var conversation = []Cue{
	{Start: 0.32, End: 2.1, Speaker: "SPEAKER_0", Text: "Good morning, and welcome."},
	{Start: 0, End: 12.5, Event: true, Text: "Music"},
	{
		Start: 2.4, End: 12.9, Speaker: "SPEAKER_1",
		Text: "Thank you. I would like to begin with the figures of the last quarter, which came in on Monday, and then turn to the questions.",
		Words: []Word{
			{" Thank", 2.4, 2.7, 0.9},
			{" you.", 2.7, 3.0, 0.9},
			{" I", 3.6, 3.7, 0.9},
			{" would", 3.7, 3.9, 0.9},
			{" like", 3.9, 4.1, 0.9},
			{" to", 4.1, 4.2, 0.9},
			{" begin", 4.2, 4.6, 0.9},
			{" with", 4.6, 4.8, 0.9},
			{" the", 4.8, 4.9, 0.9},
			{" figures", 4.9, 5.4, 0.9},
			{" of", 5.4, 5.5, 0.9},
			{" the", 5.5, 5.6, 0.9},
			{" last", 5.6, 6.0, 0.9},
			{" quarter,", 6.0, 6.6, 0.9},
			{" which", 7.1, 7.4, 0.9},
			{" came", 7.4, 7.7, 0.9},
			{" in", 7.7, 7.8, 0.9},
			{" on", 7.8, 7.9, 0.9},
			{" Monday,", 7.9, 8.5, 0.9},
			{" and", 9.0, 9.2, 0.9},
			{" then", 9.2, 9.5, 0.9},
			{" turn", 9.5, 9.9, 0.9},
			{" to", 9.9, 10.0, 0.9},
			{" the", 10.0, 10.1, 0.9},
			{" questions.", 10.1, 12.9, 0.9},
		},
	},
	{Start: 13, End: 21, Speaker: "SPEAKER_0", Text: "A long remark that has no word times at all has to be shared out over its span by the length of its text alone."},
	{Start: 22, End: 30, Speaker: "SPEAKER_1", Text: "我们先来看一下上个季度的数字，这些数字是星期一才收到的，然后再回答大家的问题。请问有人听得见吗？好的，那么我们开始吧。"},
	{Start: 30.5, End: 32, Speaker: "R&D <lab>", Text: "If a < b && b > c --> then <i>stop</i> {\\an8}here."},
	{Start: 33, End: 33, Event: true, Text: "[Door]"},
	{Start: 100*3600 + 59*60 + 59.9996, End: 363602, Text: "Still\nrunning\tafter  a hundred hours."},
	{Start: 363603, End: 363604, Text: "  \n "},
}

var turns = []turn{
	{2.4, 12.9, "SPEAKER_1"},
	{0.32, 2.1, "SPEAKER_0"},
	{13, 13.0001, "SPEAKER_0"},
	{13, 21.12345, "Ms. Jane Doe"},
	{360000, 360002, ""},
}

func TestGolden(t *testing.T) {
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

// full is a writer that takes so many bytes and then fails.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteErrorsComeBack(t *testing.T) {
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

func TestInputIsNotChanged(t *testing.T) {
	cues := []Cue{{Start: 5, End: 4, Text: " b\n"}, {Start: 1, End: 9, Text: "a"}}
	before := append([]Cue(nil), cues...)
	require.NoError(t, SRT(io.Discard, cues, Options{}))
	assert.Equal(t, before, cues)
	moved := append([]turn(nil), turns...)
	require.NoError(t, writeRTTM(io.Discard, "f", moved))
	assert.Equal(t, turns, moved)
}
