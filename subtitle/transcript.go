package subtitle

import (
	"archive/zip"
	"fmt"
	"io"
	"path"

	"github.com/otograph/otograph/spec"
)

// transcript is a document to read: its title, if any, and a paragraph per
// speaker's turn or sound.
type transcript struct {
	Title      string
	Paragraphs []paragraph
}

// writeMarkdown writes a transcript with the title as a heading, the speakers in
// bold, the start times (m:ss or h:mm:ss), and sounds in italics. Special
// characters are escaped.
func writeMarkdown(w io.Writer, title string, cues []Cue) error {
	return execute(w, "markdown.txt", transcript{cleanText(title), paragraphs(cues)})
}

// writeDOCX writes a transcript as a word-processing document: the title in the
// style Title, the speakers in bold, the start times in gray, sounds in italics.
func writeDOCX(w io.Writer, title string, cues []Cue) error {
	pack := zip.NewWriter(w)
	content := transcript{cleanText(title), paragraphs(cues)}
	for _, part := range []string{"[Content_Types].xml", "_rels/.rels", "word/_rels/document.xml.rels", "word/styles.xml", "word/document.xml"} {
		f, err := pack.Create(part)
		if err != nil {
			return err
		}
		if err := execute(f, path.Base(part), content); err != nil {
			return err
		}
	}
	return pack.Close()
}

// paragraph is the uninterrupted speech of one speaker.
type paragraph struct {
	Start         int64 // milliseconds
	Speaker, Text string
	Event         bool
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
