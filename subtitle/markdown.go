package subtitle

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
)

// writeMarkdown writes a transcript to read: a title, if any, as a heading, a
// paragraph per speaker's turn with the speaker in bold and the start time
// (m:ss or h:mm:ss), and sounds in italics. Special characters are escaped.
func writeMarkdown(w io.Writer, title string, cues []Cue) error {
	out := bufio.NewWriter(w)
	if title = cleanText(title); title != "" {
		fmt.Fprintf(out, "# %s\n", escapeMarkdown(title))
	}
	for i, p := range paragraphs(cues) {
		p.Text = textfile.Isolate(p.Text)
		if i > 0 || title != "" {
			fmt.Fprintln(out)
		}
		switch {
		case p.Event:
			fmt.Fprintf(out, "(%s) *%s*\n", mark(p.Start), escapeMarkdown(p.Text))
		case p.Speaker == "":
			fmt.Fprintf(out, "(%s) %s\n", mark(p.Start), escapeMarkdown(p.Text))
		default:
			fmt.Fprintf(out, "**%s** (%s) %s\n", escapeMarkdown(p.Speaker), mark(p.Start), escapeMarkdown(p.Text))
		}
	}
	return out.Flush()
}

// markdownEscapes puts a backslash before the punctuation that CommonMark
// interprets inside a paragraph. Paragraphs never begin with the text itself,
// so block markers (lists, quotes, headings) need none.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`, "~", `\~`, "|", `\|`, "#", `\#`, "!", `\!`, "$", `\$`)

func escapeMarkdown(s string) string { return markdownEscapes.Replace(s) }
