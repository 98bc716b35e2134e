package subtitle

import (
	"bufio"
	"embed"
	"fmt"
	"html"
	"io"
	"strings"
	"sync"
	"text/template"

	"github.com/otograph/otograph/internal/files/textfile"
)

// templateTexts are the documents that templates write: TextGrid and Markdown,
// ELAN's annotations (EAF 3.0, schema http://www.mpi.nl/tools/elan/EAFv3.0.xsd),
// and the parts of a WordprocessingML package (ECMA-376, Office Open XML).
//
//go:embed *.txt eaf.xml all:docx
var templateTexts embed.FS

// templates parses the embedded texts once. A wrong one is a build error.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"after":       func(i int) int { return i + 1 },
		"escape":      markdownEscapes.Replace,
		"isolate":     textfile.Isolate,
		"mark":        mark,
		"quote":       func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }, // Praat's
		"rightToLeft": textfile.RightToLeft,
		"run": func(properties, text string) string { // of DOCX, with one set of properties
			return fmt.Sprintf(`<w:r><w:rPr>%s</w:rPr><w:t xml:space="preserve">%s</w:t></w:r>`, properties, html.EscapeString(text))
		},
		"seconds": seconds,
	}).ParseFS(templateTexts, "*.txt", "eaf.xml", "docx/*.xml", "docx/*/*.xml", "docx/*/.rels", "docx/*/*/*.rels"))
})

// execute writes a document by the template with a name.
func execute(w io.Writer, name string, content any) error {
	out := bufio.NewWriter(w)
	if err := templates().ExecuteTemplate(out, name, content); err != nil {
		return err
	}
	return out.Flush()
}

// markdownEscapes puts a backslash before the punctuation that CommonMark
// interprets inside a paragraph. Paragraphs never begin with the text itself,
// so block markers (lists, quotes, headings) need none.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`, "~", `\~`, "|", `\|`, "#", `\#`, "!", `\!`, "$", `\$`)
