package subtitle

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/otograph/otograph/spec"
)

// writeRTTM writes turns in NIST's Rich Transcription Time Marked format, one
// SPEAKER line each on channel 1, in order of time: onset and duration in
// seconds with three decimals. file is the recording's identifier. Spaces
// separate the fields, so spaces in file and in speakers become "_". Turns
// without a duration are omitted, and an empty name becomes "<NA>".
func writeRTTM(w io.Writer, file string, turns []spec.Turn, notes ...string) error {
	sorted := slices.Clone(turns)
	slices.SortStableFunc(sorted, func(a, b spec.Turn) int { return cmp.Compare(cleanTime(a.Start), cleanTime(b.Start)) })
	out := bufio.NewWriter(w)
	writeComments(out, notes)
	for _, t := range sorted {
		start, end := milliseconds(cleanTime(t.Start)), milliseconds(cleanTime(t.End))
		if end <= start {
			continue
		}
		fmt.Fprintf(out, "SPEAKER %s 1 %s %s <NA> <NA> %s <NA> <NA>\n",
			rttmField(file), seconds(start), seconds(end-start), rttmField(t.Speaker))
	}
	return out.Flush()
}

// writeComments writes lines that NIST's formats skip.
func writeComments(out io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(out, ";; %s\n", note)
	}
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

func rttmField(s string) string {
	if s = strings.ReplaceAll(cleanText(s), " ", "_"); s == "" {
		return "<NA>"
	}
	return s
}
