package subtitle

import (
	"bufio"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrScript marks bytes that are no subtitles in SubRip or WebVTT.
var ErrScript = errors.New("not SubRip or WebVTT subtitles")

// Script is a subtitle file as it was read: its cues keep their lines, which
// the layout of SRT and VTT would break again.
type Script struct {
	// VTT reports that the file is WebVTT rather than SubRip.
	VTT bool
	// Cues are in the order of the file.
	Cues []ScriptCue
}

// ScriptCue is one cue of a Script.
type ScriptCue struct {
	// Start and End are seconds.
	Start, End float64
	// Settings is the text after the times ("line:0 align:start").
	Settings string
	// Lines are the lines of text with their tags; there is at least one.
	Lines []string
}

// Limits of a subtitle file.
const (
	maxScript     = 32 << 20 // bytes
	maxScriptCues = 200_000
)

// scriptTime is a line of times; hours may be absent, and the mark before the
// milliseconds is a comma in SubRip and a point in WebVTT.
var scriptTime = regexp.MustCompile(`^\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})\s*-->\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})(?:\s+(.*?))?\s*$`)

// ParseScript reads SubRip or WebVTT in UTF-8. WebVTT's comments, styles and regions
// are passed over. Errors wrap ErrScript and name the line.
func ParseScript(data []byte) (*Script, error) {
	fail := func(line int, format string, a ...any) (*Script, error) {
		return nil, fmt.Errorf("%w: line %d: %s", ErrScript, line, fmt.Sprintf(format, a...))
	}
	if len(data) > maxScript {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrScript, maxScript, len(data))
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: expected UTF-8", ErrScript)
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(data), "\ufeff"))
	lines := strings.Split(text, "\n")
	s := &Script{VTT: lines[0] == "WEBVTT" || strings.HasPrefix(lines[0], "WEBVTT ") || strings.HasPrefix(lines[0], "WEBVTT\t")}
	for i := 0; i < len(lines); i++ {
		m := scriptTime.FindStringSubmatch(lines[i])
		if m == nil {
			if strings.Contains(lines[i], "-->") {
				return fail(i+1, "expected times such as 00:00:01,000 --> 00:00:02,500, found %.60q", lines[i])
			}
			continue // a number, a name, a comment
		}
		c := ScriptCue{Start: scriptSeconds(m[1:5]), End: scriptSeconds(m[5:9]), Settings: m[9]}
		if c.End < c.Start {
			return fail(i+1, "expected an end after the start, found %.60q", lines[i])
		}
		for i+1 < len(lines) && strings.TrimSpace(lines[i+1]) != "" && !strings.Contains(lines[i+1], "-->") {
			i++
			c.Lines = append(c.Lines, strings.TrimRight(lines[i], " \t"))
		}
		if len(c.Lines) == 0 {
			continue
		}
		if len(s.Cues) == maxScriptCues {
			return fail(i+1, "expected at most %d cues", maxScriptCues)
		}
		s.Cues = append(s.Cues, c)
	}
	if len(s.Cues) == 0 && !s.VTT {
		return nil, fmt.Errorf("%w: found no cue", ErrScript)
	}
	return s, nil
}

// scriptSeconds reads hours, minutes, seconds and a fraction.
func scriptSeconds(parts []string) float64 {
	var v [3]float64
	for i, p := range parts[:3] {
		n, _ := strconv.Atoi(p) // digits alone, or none
		v[i] = float64(n)
	}
	fraction, _ := strconv.Atoi((parts[3] + "00")[:3])
	return (v[0]*60+v[1])*60 + v[2] + float64(fraction)/1000
}

// scriptTag is a tag in the text of a cue: <i>, </v>, <00:00:01.000>, {\an8}.
var scriptTag = regexp.MustCompile(`<[^<>]*>|\{\\[^{}]*\}`)

// Text returns what is said in a cue, without tags and line breaks.
func (s *Script) Text(i int) string {
	text := scriptTag.ReplaceAllString(strings.Join(s.Cues[i].Lines, " "), "")
	if s.VTT {
		text = html.UnescapeString(text)
	}
	return cleanText(text)
}

// Write writes the script as WebVTT or as SubRip: in its own format the lines of
// each cue as they were read, in the other one without tags and settings.
func (s *Script) Write(w io.Writer, vtt bool) error {
	out := bufio.NewWriter(w)
	mark, escape := ',', srtText
	if vtt {
		mark, escape = '.', vttEscapes.Replace
		fmt.Fprint(out, "WEBVTT\n\n")
	}
	n := 0
	for _, c := range s.Cues {
		lines := c.Lines
		if vtt != s.VTT {
			lines, c.Settings = nil, ""
			for _, line := range c.Lines {
				line = scriptTag.ReplaceAllString(line, "")
				if s.VTT {
					line = html.UnescapeString(line)
				}
				if line = cleanText(line); line != "" {
					lines = append(lines, escape(line))
				}
			}
			if len(lines) == 0 {
				continue
			}
		}
		n++
		if !vtt {
			fmt.Fprintln(out, n)
		}
		start, end := span(Cue{Start: cleanTime(c.Start), End: cleanTime(c.End)})
		times := fmt.Sprintf("%s --> %s", clock(start, mark), clock(end, mark))
		if c.Settings != "" {
			times += " " + c.Settings
		}
		fmt.Fprintf(out, "%s\n%s\n\n", times, strings.Join(lines, "\n"))
	}
	return out.Flush()
}
