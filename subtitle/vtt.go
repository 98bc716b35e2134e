package subtitle

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
)

// VTT writes cues as WebVTT: times as HH:MM:SS.mmm, speakers as voice spans
// ("<v name>"), with a dash before each of several simultaneous speakers, and &
// < > escaped.
func VTT(w io.Writer, cues []Cue, o Options) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "WEBVTT\n\n")
	if note := cleanText(o.Note); note != "" {
		fmt.Fprintf(out, "NOTE %s\n\n", vttEscapes.Replace(note))
	}
	for _, p := range layout(cues, o, func(string) int { return 0 }) {
		start, end := span(p.start, p.end)
		fmt.Fprintf(out, "%s --> %s\n", clock(start, '.'), clock(end, '.'))
		for _, v := range p.voices {
			prefix, suffix := "", ""
			if v.speaker != "" {
				prefix = "<v " + vttEscapes.Replace(v.speaker) + ">"
			}
			if len(p.voices) > 1 {
				if prefix += dash; v.speaker != "" {
					suffix = "</v>"
				}
			}
			textfile.IsolateLines(v.lines, false)
			for k := range v.lines {
				v.lines[k] = vttEscapes.Replace(v.lines[k])
			}
			fmt.Fprintf(out, "%s%s%s\n", prefix, strings.Join(v.lines, "\n"), suffix)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// vttEscapes are the character references that WebVTT requires in cue text and
// annotations. With ">" escaped, a text cannot contain "-->".
var vttEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
