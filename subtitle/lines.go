package subtitle

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/otograph/otograph/spec"
)

// writeTSV writes a header and a line per cue: start and end in milliseconds,
// speaker, text. Segments stay whole; tabs and line breaks become spaces.
func writeTSV(w io.Writer, cues []Cue) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "start\tend\tspeaker\ttext")
	for _, c := range clean(cues) {
		start, end := span(c.Start, c.End)
		fmt.Fprintf(out, "%d\t%d\t%s\t%s\n", start, end, c.Speaker, c.Text)
	}
	return out.Flush()
}

// writeLabels writes a label track of Audacity: a line per cue with start and
// end in seconds and the text, after "[name] ", separated by tabs.
func writeLabels(w io.Writer, cues []Cue) error {
	out := bufio.NewWriter(w)
	for _, c := range clean(cues) {
		start, end := span(c.Start, c.End)
		fmt.Fprintf(out, "%s\t%s\t%s%s\n", seconds(start), seconds(end), speakerPrefix(c.Speaker), c.Text)
	}
	return out.Flush()
}

// ErrNoWordTimes is returned when CTM is written for speech without word times.
var ErrNoWordTimes = errors.New("no word times")

// writeCTM writes NIST's conversation time mark format, as scoring tools read
// it: a line per word with file, channel 1, start and duration in seconds, the
// word, and its probability. Spaces in file become "_", and sounds are omitted.
// Speech without word times is an error that wraps ErrNoWordTimes.
func writeCTM(w io.Writer, file string, cues []Cue, notes ...string) error {
	cues = slices.DeleteFunc(clean(cues), func(c Cue) bool { return c.Event })
	if i := slices.IndexFunc(cues, func(c Cue) bool { return len(c.Words) == 0 }); i >= 0 {
		return fmt.Errorf("%w: the segment at %s s", ErrNoWordTimes, seconds(milliseconds(cues[i].Start)))
	}
	out := bufio.NewWriter(w)
	writeComments(out, notes)
	for _, c := range cues {
		for _, word := range c.Words {
			start := milliseconds(cleanTime(word.Start))
			end := max(milliseconds(cleanTime(word.End)), start)
			text := rttmField(word.Word)
			if text == "<NA>" {
				continue
			}
			fmt.Fprintf(out, "%s 1 %s %s %s %.4f\n", rttmField(file), seconds(start), seconds(end-start), text, min(max(word.Probability, 0), 1))
		}
	}
	return out.Flush()
}

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
