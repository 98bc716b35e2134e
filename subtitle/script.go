package subtitle

import (
	"bufio"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
)

// ErrScript marks bytes that are not SubRip or WebVTT subtitles.
var ErrScript = errors.New("not SubRip or WebVTT subtitles")

// Script is a parsed subtitle file. Its cues keep their line breaks, which SRT
// and VTT would lay out again.
type Script struct {
	// VTT reports that the file is WebVTT rather than SubRip.
	VTT bool
	// Header holds the lines of WebVTT's header, beginning with the signature.
	Header []string
	// Cues holds the cues in the file's order.
	Cues []ScriptCue
	// Blocks holds WebVTT's blocks after the last cue.
	Blocks [][]string
}

// ScriptCue is one cue of a Script.
type ScriptCue struct {
	// Start and End are in seconds.
	Start, End float64
	// Name is the identifier of a WebVTT cue.
	Name string
	// Settings is the text after the times ("line:0 align:start").
	Settings string
	// Lines holds the lines of text with their tags; there is at least one.
	Lines []string
	// Blocks holds WebVTT's blocks between the previous cue and this one:
	// comments, styles, regions and unknown ones.
	Blocks [][]string
}

// Tags in a cue's text: WebVTT <i>, </v>, <00:00:01.000>; SubRip <i>, {\an8}.
var (
	vttTag = regexp.MustCompile(`<[^<>]*>`)
	srtTag = regexp.MustCompile(`<[\pL/!][^<>]*>|\{\\[^{}]*\}`)
)

// srtParted removes SRT's separators from text like a tag or an arrow.
var srtParted = strings.NewReplacer("<\u2060", "<", "{\u2060", "{", "-\u2060>", "->")

// plain returns a text without tags.
func (s *Script) plain(text string) string {
	if s.VTT {
		return cleanText(html.UnescapeString(vttTag.ReplaceAllString(text, "")))
	}
	return cleanText(srtParted.Replace(srtTag.ReplaceAllString(text, "")))
}

// Text returns a cue's text without tags and line breaks.
func (s *Script) Text(i int) string { return s.plain(strings.Join(s.Cues[i].Lines, " ")) }

// Write writes the script as WebVTT or as SubRip. In its own format everything
// but the times is unchanged; in the other one, cues lose their tags.
func (s *Script) Write(w io.Writer, vtt bool) error {
	out := bufio.NewWriter(w)
	if vtt {
		header := []string{"WEBVTT"}
		if s.VTT {
			header = s.Header
		}
		writeBlock(out, header)
	}
	n := 0
	for _, c := range s.Cues {
		lines := c.Lines
		if vtt != s.VTT {
			c.Name, c.Settings, c.Blocks = "", "", nil
			lines = s.converted(c.Lines)
		}
		for _, b := range c.Blocks {
			writeBlock(out, b)
		}
		if len(lines) == 0 {
			continue
		}
		n++
		writeBlock(out, append(c.head(vtt, n), lines...))
	}
	if vtt && s.VTT {
		for _, b := range s.Blocks {
			writeBlock(out, b)
		}
	}
	return out.Flush()
}

// writeBlock writes lines and an empty line after them.
func writeBlock(out *bufio.Writer, lines []string) {
	fmt.Fprintf(out, "%s\n\n", strings.Join(lines, "\n"))
}

// head returns the lines before a cue's text: name or number, and times.
func (c ScriptCue) head(vtt bool, number int) []string {
	start, end := span(cleanTime(c.Start), cleanTime(c.End))
	point := ','
	var out []string
	if vtt {
		point = '.'
		if c.Name != "" {
			out = append(out, c.Name)
		}
	} else {
		out = append(out, fmt.Sprint(number))
	}
	times := fmt.Sprintf("%s --> %s", clock(start, point), clock(end, point))
	if c.Settings != "" {
		times += " " + c.Settings
	}
	return append(out, times)
}

// converted returns the lines of a cue as the other format writes them.
func (s *Script) converted(lines []string) []string {
	escape := vttEscapes.Replace
	if s.VTT {
		escape = srtText
	}
	var out []string
	for _, line := range lines {
		if line = s.plain(line); line != "" {
			out = append(out, escape(line))
		}
	}
	return out
}
