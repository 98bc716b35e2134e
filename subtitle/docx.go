package subtitle

import (
	"archive/zip"
	"embed"
	"fmt"
	"html"
	"io"
	"text/template"

	"github.com/otograph/otograph/internal/files/textfile"
)

// docxParts are the parts of a WordprocessingML package (ECMA-376, Office Open
// XML), as templates.
//
//go:embed all:docx
var docxParts embed.FS

// writeDOCX writes a transcript as a word-processing document (Office Open
// XML): a title, if any, in the style Title, then a paragraph per speaker's
// turn with the speaker in bold and the start in gray; sounds in italics.
func writeDOCX(w io.Writer, title string, cues []Cue) error {
	pack := zip.NewWriter(w)
	content := map[string]any{"Title": cleanText(title), "Paragraphs": paragraphs(cues)}
	for _, part := range []string{"[Content_Types].xml", "_rels/.rels", "word/_rels/document.xml.rels", "word/styles.xml", "word/document.xml"} {
		text, err := docxParts.ReadFile("docx/" + part)
		if err != nil {
			return err
		}
		f, err := pack.Create(part)
		if err != nil {
			return err
		}
		functions := template.FuncMap{"mark": mark, "rightToLeft": textfile.RightToLeft, "run": docxRun}
		if err := template.Must(template.New(part).Funcs(functions).Parse(string(text))).Execute(f, content); err != nil {
			return err
		}
	}
	return pack.Close()
}

// docxRun returns text with one set of run properties.
func docxRun(properties, text string) string {
	return fmt.Sprintf(`<w:r><w:rPr>%s</w:rPr><w:t xml:space="preserve">%s</w:t></w:r>`, properties, html.EscapeString(text))
}
