package subtitle

import (
	"bufio"
	"fmt"
	"io"
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
