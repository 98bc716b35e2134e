package subtitle

import (
	"archive/zip"
	"io"
	"path"
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
