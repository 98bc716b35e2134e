package systems

import (
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/scores"
)

// Marks holds what a transcript in NIST's formats says besides its text.
type Marks struct {
	Text    string       // the text with its alternatives and optional words; "" if it has none
	Ignored [][2]float64 // start and end of the times that are not scored
}

// ignored reports whether NIST's text of a segment says that its time is not
// scored.
func ignored(text string) bool {
	return strings.EqualFold(text, "IGNORE_TIME_SEGMENT_IN_SCORING")
}

// takeMarks removes the marks of NIST's formats from a transcript: segments
// that are not scored, and all but the first of alternatives.
func takeMarks(res *otograph.Result) (marks Marks) {
	var raw []string
	marked := false
	res.Segments = slices.DeleteFunc(res.Segments, func(s otograph.Segment) bool {
		if ignored(s.Text) {
			marks.Ignored = append(marks.Ignored, [2]float64{s.Start, s.End})
			return true
		}
		return false
	})
	for i := range res.Segments {
		text := &res.Segments[i].Text
		raw = append(raw, *text)
		*text = scores.WithoutMarks(*text)
		marked = marked || *text != raw[i]
	}
	if marked {
		marks.Text = strings.Join(raw, "\n")
	}
	return marks
}
