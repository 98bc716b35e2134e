package subtitle

import (
	"archive/zip"
	"embed"
	"encoding/xml"
	"html"
	"io"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
)

// docxParts are the fixed parts of a WordprocessingML package (ECMA-376, Office
// Open XML).
//
//go:embed all:docx
var docxParts embed.FS

const wordNamespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"

// writeDOCX writes a transcript as a word-processing document (Office Open
// XML): a title, if any, in the style Title, then a paragraph per speaker's
// turn with the speaker in bold and the start in gray; sounds in italics.
func writeDOCX(w io.Writer, title string, cues []Cue) error {
	pack := zip.NewWriter(w)
	parts := []string{"[Content_Types].xml", "_rels/.rels", "word/_rels/document.xml.rels", "word/styles.xml", "word/document.xml"}
	for _, part := range parts {
		data, err := docxParts.ReadFile("docx/" + part)
		if err != nil { // the only part that is not fixed
			data = []byte(docxDocument(title, paragraphs(cues)))
		}
		f, err := pack.Create(part)
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return pack.Close()
}

func docxDocument(title string, paragraphs []paragraph) string {
	var b strings.Builder
	b.WriteString(xml.Header + `<w:document xmlns:w="` + wordNamespace + `"><w:body>`)
	if title = cleanText(title); title != "" {
		b.WriteString(`<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr>` + docxRun("", title) + `</w:p>`)
	}
	for _, p := range paragraphs {
		b.WriteString(`<w:p>`)
		direction := ""
		if textfile.RightToLeft(p.text) {
			direction = `<w:rtl/>`
			b.WriteString(`<w:pPr><w:bidi/></w:pPr>`)
		}
		if p.speaker != "" {
			b.WriteString(docxRun(`<w:b/>`, p.speaker+" "))
		}
		style := ""
		if p.event {
			style = `<w:i/>`
		}
		b.WriteString(docxRun(`<w:color w:val="808080"/>`, mark(p.start)+" ") + docxRun(style+direction, p.text) + `</w:p>`)
	}
	return b.String() + `<w:sectPr/></w:body></w:document>`
}

// docxRun returns text with one set of run properties.
func docxRun(properties, text string) string {
	return `<w:r><w:rPr>` + properties + `</w:rPr><w:t xml:space="preserve">` + html.EscapeString(text) + `</w:t></w:r>`
}
