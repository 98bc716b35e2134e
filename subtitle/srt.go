package subtitle

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/otograph/otograph/internal/files/textfile"
)

// SRT writes cues as SubRip: numbered, with times as HH:MM:SS,mmm and speakers
// as "[name] " before the text where the speaker changes. Simultaneous speakers
// each get a dash. Text from right to left is isolated (U+2067, U+2069) from the
// name, and where a line begins in another script. SubRip has no escapes: text that a player would
// interpret as a tag or an arrow is broken up by an invisible word joiner
// (U+2060).
func SRT(w io.Writer, cues []Cue, o Options) error {
	out := bufio.NewWriter(w)
	last := "" // the speaker of the cue before, sounds aside
	for i, p := range layout(cues, o, nameColumns) {
		start, end := span(p.start, p.end)
		fmt.Fprintf(out, "%d\n%s --> %s\n", i+1, clock(start, ','), clock(end, ','))
		for _, v := range p.voices {
			prefix := speakerPrefix(v.speaker)
			switch {
			case len(p.voices) > 1:
				prefix = dash + prefix
			case v.speaker == last:
				prefix, v.lines = "", typesetter{Options: o.withDefaults()}.wrap(v.atoms, 0)
			}
			textfile.IsolateLines(v.lines, v.speaker != "")
			for _, line := range v.lines {
				fmt.Fprintf(out, "%s\n", srtText(prefix+line))
				prefix = "" // only before the first line
			}
		}
		switch {
		case p.event:
		case len(p.voices) == 1:
			last = p.voices[0].speaker
		default:
			last = ""
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// speakerPrefix returns the speaker's name as SRT and text write it.
func speakerPrefix(name string) string {
	if name == "" {
		return ""
	}
	return "[" + name + "] "
}

func nameColumns(name string) int { return columns(speakerPrefix(name)) }

// wordJoiner has no width and no meaning to readers.
const wordJoiner = '\u2060'

// srtText breaks up "<b", "</" and "{\" (tags to players) and "-->".
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

// clock formats milliseconds as HH:MM:SS, mark, and three digits.
func clock(ms int64, mark rune) string {
	return fmt.Sprintf("%02d:%02d:%02d%c%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, mark, ms%1000)
}

// VTT writes cues as WebVTT: times as HH:MM:SS.mmm, speakers as voice spans
// ("<v name>"), with a dash before each of several simultaneous speakers, and &
// < > escaped.
func VTT(w io.Writer, cues []Cue, o Options) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "WEBVTT\n\n")
	if note := cleanText(o.Note); note != "" {
		fmt.Fprintf(out, "NOTE %s\n\n", vttEscapes.Replace(note))
	}
	for _, p := range layout(cues, o, func(string) int { return 0 }) {
		start, end := span(p.start, p.end)
		fmt.Fprintf(out, "%s --> %s\n", clock(start, '.'), clock(end, '.'))
		for _, v := range p.voices {
			prefix, suffix := "", ""
			if v.speaker != "" {
				prefix = "<v " + vttEscapes.Replace(v.speaker) + ">"
			}
			if len(p.voices) > 1 {
				if prefix += dash; v.speaker != "" {
					suffix = "</v>"
				}
			}
			textfile.IsolateLines(v.lines, false)
			for k := range v.lines {
				v.lines[k] = vttEscapes.Replace(v.lines[k])
			}
			fmt.Fprintf(out, "%s%s%s\n", prefix, strings.Join(v.lines, "\n"), suffix)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// vttEscapes are the character references that WebVTT requires in cue text and
// annotations. With ">" escaped, a text cannot contain "-->".
var vttEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
