package subtitle

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeRTTM writes turns in NIST's Rich Transcription Time Marked format, one
// SPEAKER line each on channel 1, in order of time: onset and duration in
// seconds with three decimals. file is the recording's identifier. Spaces
// separate the fields, so spaces in file and in speakers become "_". Turns
// without a duration are omitted, and an empty name becomes "<NA>".
func writeRTTM(w io.Writer, file string, turns []turn) error {
	sorted := slices.Clone(turns)
	for i := range sorted {
		sorted[i].Start = cleanTime(sorted[i].Start)
		sorted[i].End = cleanTime(sorted[i].End)
	}
	slices.SortStableFunc(sorted, func(a, b turn) int { return cmp.Compare(a.Start, b.Start) })
	out := bufio.NewWriter(w)
	for _, t := range sorted {
		start, end := milliseconds(t.Start), milliseconds(t.End)
		if end <= start {
			continue
		}
		fmt.Fprintf(out, "SPEAKER %s 1 %s %s <NA> <NA> %s <NA> <NA>\n",
			rttmField(file), seconds(start), seconds(end-start), rttmField(t.Speaker))
	}
	return out.Flush()
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

func rttmField(s string) string {
	if s = strings.ReplaceAll(cleanText(s), " ", "_"); s == "" {
		return "<NA>"
	}
	return s
}
