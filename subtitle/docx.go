package subtitle

import (
	"archive/zip"
	"encoding/xml"
	"html"
	"io"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
)

// The fixed parts of a WordprocessingML package (ECMA-376, Office Open XML).
const (
	docxTypes = xml.Header + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/>` +
		`<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>` +
		`<Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/>` +
		`</Types>`
	docxRelations = xml.Header + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>` +
		`</Relationships>`
	docxDocumentRelations = xml.Header + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/>` +
		`</Relationships>`
	docxStyles = xml.Header + `<w:styles xmlns:w="` + wordNamespace + `">` +
		`<w:docDefaults><w:rPrDefault><w:rPr><w:sz w:val="22"/></w:rPr></w:rPrDefault>` +
		`<w:pPrDefault><w:pPr><w:spacing w:after="160" w:line="276" w:lineRule="auto"/></w:pPr></w:pPrDefault></w:docDefaults>` +
		`<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>` +
		`<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/><w:basedOn w:val="Normal"/><w:rPr><w:b/><w:sz w:val="36"/></w:rPr></w:style>` +
		`</w:styles>`
	wordNamespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
)

// writeDOCX writes a transcript as a word-processing document (Office Open
// XML): a title, if any, in the style Title, then a paragraph per speaker's
// turn with the speaker in bold and the start in gray; sounds in italics.
func writeDOCX(w io.Writer, title string, cues []Cue) error {
	pack := zip.NewWriter(w)
	for _, part := range [][2]string{
		{"[Content_Types].xml", docxTypes},
		{"_rels/.rels", docxRelations},
		{"word/_rels/document.xml.rels", docxDocumentRelations},
		{"word/styles.xml", docxStyles},
		{"word/document.xml", docxDocument(title, paragraphs(cues))},
	} {
		f, err := pack.Create(part[0])
		if err != nil {
			return err
		}
		if _, err := io.WriteString(f, part[1]); err != nil {
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
