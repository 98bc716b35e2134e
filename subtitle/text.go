package subtitle

import (
	"bufio"
	"fmt"
	"io"
)

// Text writes one line per cue, in order of time, with the speaker before it as
// "[name] " and sounds as lines of their own.
func Text(w io.Writer, cues []Cue) error {
	out := bufio.NewWriter(w)
	for _, c := range clean(cues) {
		fmt.Fprintf(out, "%s%s\n", speakerPrefix(c), c.Text)
	}
	return out.Flush()
}
