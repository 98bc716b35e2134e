package subtitle

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// SRT writes cues as SubRip: numbered, times as HH:MM:SS,mmm, speakers as
// "[name] " before the text. SubRip has no escapes; what a player would take for
// a tag or an arrow is parted by an invisible word joiner (U+2060).
func SRT(w io.Writer, cues []Cue, o Options) error {
	out := bufio.NewWriter(w)
	for i, p := range layout(cues, o, speakerColumns) {
		start, end := span(p.Cue)
		fmt.Fprintf(out, "%d\n%s --> %s\n", i+1, clock(start, ','), clock(end, ','))
		for k, line := range p.lines {
			if k == 0 {
				line = speakerPrefix(p.Cue) + line
			}
			fmt.Fprintf(out, "%s\n", srtText(line))
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// speakerPrefix is how SRT and text name the speaker.
func speakerPrefix(c Cue) string {
	if c.Speaker == "" {
		return ""
	}
	return "[" + c.Speaker + "] "
}

func speakerColumns(c Cue) int { return columns(speakerPrefix(c)) }

// wordJoiner has no width and no meaning to a reader.
const wordJoiner = '\u2060'

// srtText parts "<b", "</" and "{\" (tags to players) and "-->".
func srtText(s string) string {
	if !strings.ContainsAny(s, "<{>") {
		return s
	}
	var b strings.Builder
	var before rune
	for _, r := range s {
		switch {
		case before == '<' && (unicode.IsLetter(r) || r == '/' || r == '!'),
			before == '{' && r == '\\',
			before == '-' && r == '>':
			b.WriteRune(wordJoiner)
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// clock writes milliseconds as HH:MM:SS and milliseconds after the mark; the
// hours take as many digits as they need, at least two.
func clock(ms int64, mark rune) string {
	return fmt.Sprintf("%02d:%02d:%02d%c%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, mark, ms%1000)
}
