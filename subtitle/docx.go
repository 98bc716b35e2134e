package subtitle

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
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
// XML): title in the style Title, then one paragraph per speaker's turn with
// the speaker in bold and the start time in gray; sounds are in italics. An
// empty title is omitted.
func writeDOCX(w io.Writer, title string, cues []Cue) error {
	pack := zip.NewWriter(w)
	for _, part := range []struct {
		name  string
		bytes []byte
	}{
		{"[Content_Types].xml", []byte(docxTypes)},
		{"_rels/.rels", []byte(docxRelations)},
		{"word/_rels/document.xml.rels", []byte(docxDocumentRelations)},
		{"word/styles.xml", []byte(docxStyles)},
		{"word/document.xml", docxDocument(title, paragraphs(cues))},
	} {
		f, err := pack.Create(part.name)
		if err != nil {
			return err
		}
		if _, err := f.Write(part.bytes); err != nil {
			return err
		}
	}
	return pack.Close()
}

func docxDocument(title string, paragraphs []paragraph) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header + `<w:document xmlns:w="` + wordNamespace + `"><w:body>`)
	if title = cleanText(title); title != "" {
		b.WriteString(`<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr>`)
		docxRun(&b, "", title)
		b.WriteString(`</w:p>`)
	}
	for _, p := range paragraphs {
		b.WriteString(`<w:p>`)
		if p.speaker != "" {
			docxRun(&b, `<w:b/>`, p.speaker+" ")
		}
		docxRun(&b, `<w:color w:val="808080"/>`, mark(p.start)+" ")
		style := ""
		if p.event {
			style = `<w:i/>`
		}
		docxRun(&b, style, p.text)
		b.WriteString(`</w:p>`)
	}
	b.WriteString(`<w:sectPr/></w:body></w:document>`)
	return b.Bytes()
}

// docxRun writes text with one set of run properties.
func docxRun(b *bytes.Buffer, properties, text string) {
	fmt.Fprintf(b, `<w:r><w:rPr>%s</w:rPr><w:t xml:space="preserve">`, properties)
	_ = xml.EscapeText(b, []byte(text)) // writing to a bytes.Buffer cannot fail
	b.WriteString(`</w:t></w:r>`)
}
