package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph"
)

// TestBarKeepsItsLength: the bar is as long at the end as at the beginning,
// whatever the words next to it, and the line fits the terminal.
func TestBarKeepsItsLength(t *testing.T) {
	for _, c := range []struct {
		name        string
		width, want int
	}{
		{"a.opus", 79, 20},
		{"a.opus", 199, longestBar},
		{"conversation.flac", 79, shortestBar},
		{"a recording of a very long conversation.flac", 79, shortestBar},
		{"a.opus", 39, 0},
	} {
		b := &bar{name: c.name}
		for i, p := range []otograph.Progress{
			{Stage: otograph.StageDecode},
			{Stage: otograph.StageVAD, Fraction: 0.03, AudioDuration: 18000},
			{Stage: otograph.StageTranscribe, Fraction: 0.5, AudioDuration: 18000},
			{Stage: otograph.StageDiarize, Fraction: 1, AudioDuration: 18000},
		} {
			line := clip(b.line(p, time.Duration(i)*time.Minute, c.width), c.width)
			assert.Equal(t, c.want, strings.Count(line, "█")+strings.Count(line, "·"), line)
			assert.LessOrEqual(t, utf8.RuneCountInString(line), c.width)
		}
	}
}
