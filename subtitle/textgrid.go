package subtitle

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// TextGrid writes Praat's TextGrid in the long text format: an interval tier
// per speaker, a tier of each speaker's words if word times are known, and the
// sounds. duration is the recording's length in seconds; the grid is longer if
// a cue ends later. Without cues the grid has one empty tier, because Praat
// opens no grid without tiers.
func TextGrid(w io.Writer, duration float64, cues []Cue) error {
	rows := tiers(cues)
	if len(rows) == 0 {
		rows = []tier{{Name: noSpeaker}}
	}
	length := max(milliseconds(cleanTime(duration)), 1)
	for _, t := range rows {
		length = max(length, lastEnd(t.Spans))
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\nxmin = 0\nxmax = %s\ntiers? <exists>\nsize = %d\nitem []:\n", seconds(length), len(rows))
	for i, t := range rows {
		spans := fillGaps(t.Spans, length)
		fmt.Fprintf(out, "    item [%d]:\n        class = \"IntervalTier\"\n        name = %s\n        xmin = 0\n        xmax = %s\n        intervals: size = %d\n",
			i+1, praatString(t.Name), seconds(length), len(spans))
		for k, s := range spans {
			fmt.Fprintf(out, "        intervals [%d]:\n            xmin = %s\n            xmax = %s\n            text = %s\n", k+1, seconds(s.Start), seconds(s.End), praatString(s.Text))
		}
	}
	return out.Flush()
}

// fillGaps returns the spans with empty ones between them, from 0 to length,
// because an interval tier has no gaps.
func fillGaps(spans []tierSpan, length int64) []tierSpan {
	var out []tierSpan
	var now int64
	for _, s := range spans {
		if s.Start > now {
			out = append(out, tierSpan{now, s.Start, ""})
		}
		out = append(out, s)
		now = s.End
	}
	if now < length {
		out = append(out, tierSpan{now, length, ""})
	}
	return out
}

// praatString quotes a string and doubles the quotes in it.
func praatString(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
