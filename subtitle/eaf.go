package subtitle

import (
	"io"
	"net/url"
	"slices"
	"time"
)

// writeEAF writes an annotation document of ELAN (format 3.0): a tier per
// speaker, below it a tier with the speaker's words if word times are known,
// and the sounds. media is the recording's file name; its address says that the
// file is next to the document. date is the time of writing. Every start and end
// has a slot, in order of time, as ELAN expects them; the list may be empty.
func writeEAF(w io.Writer, media string, date time.Time, cues []Cue) error {
	rows := tiers(cues)
	var times []int64
	for _, t := range rows {
		for _, s := range t.Spans {
			times = append(times, s.Start, s.End)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	annotations := 0
	return execute(w, "eaf.xml", map[string]any{
		"Date": date.Format(time.RFC3339), "Media": url.PathEscape(media), "Times": times, "Tiers": rows,
		"Slot":   func(at int64) int { i, _ := slices.BinarySearch(times, at); return i + 1 },
		"Number": func() int { annotations++; return annotations },
	})
}
