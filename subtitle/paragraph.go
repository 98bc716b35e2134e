package subtitle

import (
	"fmt"

	"github.com/otograph/otograph/spec"
)

// paragraph is the uninterrupted speech of one speaker.
type paragraph struct {
	Start   int64 // milliseconds
	Speaker string
	Text    string
	Event   bool
}

// longestParagraph is the number of bytes after which a paragraph ends with the
// next cue, so that a monologue of hours remains readable.
const longestParagraph = 1200

// paragraphs joins the cues of each speaker's turn.
func paragraphs(cues []Cue) []paragraph {
	var out []paragraph
	for _, c := range clean(cues) {
		if n := len(out) - 1; n >= 0 && !c.Event && !out[n].Event && out[n].Speaker == c.Speaker && len(out[n].Text) < longestParagraph {
			out[n].Text += spec.Separated(out[n].Text, c.Text)
			continue
		}
		out = append(out, paragraph{milliseconds(c.Start), c.Speaker, c.Text, c.Event})
	}
	return out
}

// mark formats milliseconds as m:ss or h:mm:ss.
func mark(ms int64) string {
	s := ms / 1000
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
