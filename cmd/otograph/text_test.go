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
