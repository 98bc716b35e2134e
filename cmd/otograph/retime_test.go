package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/subtitle"
)

// Cues without times move with the previous cue and stay between their
// neighbors.
func TestRetimeKeepsCuesInOrder(t *testing.T) {
	s := &subtitle.Script{Cues: []subtitle.ScriptCue{{Start: 1, End: 2}, {Start: 10, End: 12}, {Start: 13, End: 14}, {Start: 14, End: 16}, {Start: 16, End: 17}, {Start: 30, End: 31}}}
	words := []align.Word{
		{Text: "gone", Missing: true},
		{Text: "a", Start: 5, End: 5.5},
		{Text: "b", Start: 5.5, End: 6},
		{Text: "gone", Missing: true},
		{Text: "gone", Missing: true},
		{Text: "c", Start: 7, End: 7.5},
		{Text: "gone", Missing: true},
	}
	assert.Equal(t, 4, retime(s, words, []int{0, 1, 1, 2, 3, 4, 5}))
	var times [][2]float64
	for _, c := range s.Cues {
		times = append(times, [2]float64{c.Start, c.End})
	}
	assert.Equal(t, [][2]float64{{0, 1}, {5, 6}, {6, 6.5}, {6.5, 7}, {7, 7.5}, {21, 22}}, times)
}

func TestAlignedCuesFollowSentencesAndPauses(t *testing.T) {
	words := []align.Word{
		{Text: "Good", Start: 1, End: 1.2},
		{Text: "morning.", Start: 1.2, End: 1.6},
		{Text: "How", Start: 1.6, End: 1.8},
		{Text: "er", Missing: true},
		{Text: "are", Start: 3, End: 3.2},
		{Text: "你", Start: 3.2, End: 3.4},
		{Text: "好。", Start: 3.4, End: 3.6},
	}
	var texts []string
	for _, c := range alignedCues(words, nil) {
		texts = append(texts, c.Text)
	}
	assert.Equal(t, []string{"Good morning.", "How", "are 你好。"}, texts)
	assert.Len(t, alignedCues(words, []int{0, 0, 0, 0, 0, 1, 1}), 2)
}
