package subtitle

import "io"

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
	for i := range rows {
		rows[i].Spans = fillGaps(rows[i].Spans, length)
	}
	return execute(w, "textgrid.txt", map[string]any{"Length": length, "Tiers": rows})
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
