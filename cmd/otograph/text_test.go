package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
)

func TestTextMarksUncertainWords(t *testing.T) {
	res := &otograph.Result{Segments: []otograph.Segment{{Start: 0.5, End: 2, Text: "So it goes on.", Words: []otograph.Word{
		{Word: "So", Start: 0.5, End: 0.8, Probability: 0.9},
		{Word: "it", Start: 0.8, End: 1, Probability: 0.8, Interpolated: true},
		{Word: "goes", Start: 1, End: 1.5, Probability: 0.5, Doubtful: true},
		{Word: "on.", Start: 1.5, End: 2, Probability: 0.25, Interpolated: true, Doubtful: true},
	}}}}
	var out strings.Builder
	require.NoError(t, writeText(&out, res, textStyle{words: true}))
	var words []string
	for line := range strings.Lines(out.String()) {
		words = append(words, strings.TrimSpace(line))
	}
	assert.Equal(t, []string{
		"0:00.5 – 0:02.0  So it goes on.",
		"0.50 – 0.80   90 %  So",
		"0.80 – 1.00   80 %  it  (time interpolated)",
		"1.00 – 1.50   50 %  goes  (doubtful)",
		"1.50 – 2.00   25 %  on.  (doubtful, time interpolated)",
	}, words)
}

func TestTotals(t *testing.T) {
	assert.Equal(t, "2 written, 1 failed: junk.mp3", totals(2, []string{"junk.mp3"}))
	assert.Equal(t, "3 written", totals(3, nil))
}

// TestTextHasOneLinePerSentence: pauses within a sentence of one speaker begin
// no line; a change of speaker and a long pause do.
func TestTextHasOneLinePerSentence(t *testing.T) {
	res := &otograph.Result{Segments: []otograph.Segment{
		{Start: 1, End: 1.4, Speaker: "A", Text: "Yes,"},
		{Start: 2.3, End: 3, Speaker: "A", Text: "I think it's"},
		{Start: 3.9, End: 5, Speaker: "A", Text: "an oil light."},
		{Start: 5.1, End: 6, Speaker: "A", Text: "It is on,"},
		{Start: 6.1, End: 7, Speaker: "B", Text: "you say,"},
		{Start: 8.6, End: 9, Speaker: "B", Text: "and then"},
		{Start: 9.2, End: 9.5, Speaker: "B", Text: "היום."},
	}}
	res.Ran.Diarize = true
	var out strings.Builder
	require.NoError(t, writeText(&out, res, textStyle{}))
	assert.Equal(t, "0:01.0 – 0:05.0  A      Yes, I think it's an oil light.\n0:05.1 – 0:06.0  A      It is on,\n"+
		"0:06.1 – 0:07.0  B      you say,\n0:08.6 – 0:09.5  B      and then היום.\n", out.String())
	assert.Equal(t, "Yes,", res.Segments[0].Text, "the result is not changed")
}
