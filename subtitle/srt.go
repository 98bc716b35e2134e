package subtitle

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// SRT writes cues as SubRip: numbered, times as HH:MM:SS,mmm, speakers as
// "[name] " before the text, with a dash before each of several who speak at once. SubRip has no escapes; what a player would take for
// a tag or an arrow is parted by an invisible word joiner (U+2060).
func SRT(w io.Writer, cues []Cue, o Options) error {
	out := bufio.NewWriter(w)
	for i, p := range layout(cues, o, nameColumns) {
		start, end := span(p.start, p.end)
		fmt.Fprintf(out, "%d\n%s --> %s\n", i+1, clock(start, ','), clock(end, ','))
		for _, v := range p.voices {
			prefix := speakerPrefix(v.speaker)
			if len(p.voices) > 1 {
				prefix = dash + prefix
			}
			for _, line := range v.lines {
				fmt.Fprintf(out, "%s\n", srtText(prefix+line))
				prefix = ""
			}
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// speakerPrefix is how SRT and text name the speaker.
func speakerPrefix(name string) string {
	if name == "" {
		return ""
	}
	return "[" + name + "] "
}

func nameColumns(name string) int { return columns(speakerPrefix(name)) }

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
