package subtitle

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// VTT writes cues as WebVTT: times as HH:MM:SS.mmm, speakers as voice spans
// ("<v name>"), & < and > escaped.
func VTT(w io.Writer, cues []Cue, o Options) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "WEBVTT\n\n")
	if note := cleanText(o.Note); note != "" {
		fmt.Fprintf(out, "NOTE %s\n\n", vttEscapes.Replace(note))
	}
	for _, p := range layout(cues, o, func(Cue) int { return 0 }) {
		start, end := span(p.Cue)
		fmt.Fprintf(out, "%s --> %s\n", clock(start, '.'), clock(end, '.'))
		for k, line := range p.lines {
			if k == 0 && p.Speaker != "" {
				fmt.Fprintf(out, "<v %s>", vttEscapes.Replace(p.Speaker))
			}
			fmt.Fprintln(out, vttEscapes.Replace(line))
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// vttEscapes are the character references that WebVTT requires in cue text and
// annotations. With ">" escaped, a text cannot contain "-->".
var vttEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
