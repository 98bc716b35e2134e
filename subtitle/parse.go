package subtitle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a subtitle file.
const (
	maxScript     = 32 << 20 // bytes
	maxScriptCues = 200_000
)

// scriptTime matches a line of times; hours are optional, and the mark before
// the milliseconds is a comma in SubRip and a point in WebVTT.
var scriptTime = regexp.MustCompile(`^\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})\s*-->\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})(?:\s+(.*?))?\s*$`)

// ParseScript reads SubRip or WebVTT in UTF-8. Cues need no empty line between
// them: a number before a line of times is an index. In SubRip, text after an
// empty line belongs to the cue before. Errors wrap ErrScript and name the
// line.
func ParseScript(data []byte) (*Script, error) {
	if len(data) > maxScript {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrScript, maxScript, len(data))
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: expected UTF-8", ErrScript)
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(data), "\ufeff"))
	p := scriptParser{lines: strings.Split(text, "\n")}
	for i := range p.lines {
		if p.lines[i] = strings.TrimRight(p.lines[i], " \t"); strings.TrimSpace(p.lines[i]) == "" {
			p.lines[i] = ""
		}
	}
	if first := p.lines[0]; first == "WEBVTT" || strings.HasPrefix(first, "WEBVTT ") || strings.HasPrefix(first, "WEBVTT\t") {
		p.out.VTT = true
		for p.at < len(p.lines) && p.lines[p.at] != "" && !strings.Contains(p.lines[p.at], "-->") {
			p.out.Header = append(p.out.Header, p.lines[p.at])
			p.at++
		}
	}
	for p.at < len(p.lines) || len(p.pending) > 0 {
		if err := p.cue(); err != nil {
			return nil, err
		}
	}
	if len(p.out.Cues) == 0 && !p.out.VTT {
		return nil, fmt.Errorf("%w: found no cue", ErrScript)
	}
	return &p.out, nil
}

type scriptParser struct {
	lines []string
	at    int // index of the next line
	// pending holds the blocks before a cue without text.
	pending [][]string
	out     Script
}

func (p *scriptParser) fail(format string, a ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrScript, p.at+1, fmt.Sprintf(format, a...))
}

// cue reads the next cue with the blocks before it, or the last blocks.
func (p *scriptParser) cue() error {
	before := p.until(func() bool { return strings.Contains(p.lines[p.at], "-->") })
	if p.at == len(p.lines) {
		p.out.Blocks, p.pending = append(p.pending, blocks(before)...), nil
		return nil
	}
	m := scriptTime.FindStringSubmatch(p.lines[p.at])
	if m == nil {
		return p.fail("expected times such as 00:00:01,000 --> 00:00:02,500, found %.60q", p.lines[p.at])
	}
	c := ScriptCue{Start: scriptSeconds(m[1:5]), End: scriptSeconds(m[5:9]), Settings: m[9]}
	if c.End < c.Start {
		return p.fail("expected an end after the start, found %.60q", p.lines[p.at])
	}
	if n := len(before) - 1; n >= 0 && before[n] != "" {
		before, c.Name = before[:n], before[n]
	}
	if p.out.VTT {
		c.Blocks = append(p.pending, blocks(before)...)
	} else {
		c.Name = ""
	}
	p.at++
	c.Lines = slices.DeleteFunc(slices.Clone(p.until(p.cueEnds)), func(line string) bool { return line == "" })
	if p.pending = nil; len(c.Lines) == 0 {
		p.pending = c.Blocks
		return nil
	}
	if len(p.out.Cues) == maxScriptCues {
		return p.fail("expected at most %d cues", maxScriptCues)
	}
	p.out.Cues = append(p.out.Cues, c)
	return nil
}

// until reads lines up to the first for which stop is true.
func (p *scriptParser) until(stop func() bool) []string {
	from := p.at
	for p.at < len(p.lines) && !stop() {
		p.at++
	}
	return p.lines[from:p.at]
}

// cueEnds reports whether the next line is outside the cue's text.
func (p *scriptParser) cueEnds() bool {
	line := p.lines[p.at]
	if strings.Contains(line, "-->") || p.out.VTT && line == "" {
		return true
	}
	_, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	return err == nil && p.at+1 < len(p.lines) && scriptTime.MatchString(p.lines[p.at+1])
}

// blocks splits lines at the empty ones.
func blocks(lines []string) [][]string {
	var out [][]string
	begun := false
	for _, line := range lines {
		switch {
		case line == "":
			begun = false
		case begun:
			out[len(out)-1] = append(out[len(out)-1], line)
		default:
			out, begun = append(out, []string{line}), true
		}
	}
	return out
}

// scriptSeconds reads hours, minutes, seconds and a fraction.
func scriptSeconds(parts []string) float64 {
	var v [3]float64
	for i, p := range parts[:3] {
		n, _ := strconv.Atoi(p) // only digits, or empty
		v[i] = float64(n)
	}
	fraction, _ := strconv.Atoi((parts[3] + "00")[:3])
	return (v[0]*60+v[1])*60 + v[2] + float64(fraction)/1000
}
