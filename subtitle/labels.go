package subtitle

import (
	"bufio"
	"fmt"
	"io"
)

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
