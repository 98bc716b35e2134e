package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

// textStyle configures the text format.
type textStyle struct {
	words bool // times and probabilities of the words below each segment
	color bool // for a terminal
}

// line is a segment or a sound, to be sorted by time.
type line struct {
	start, end float64
	segment    *otograph.Segment
	sound      string
}

// soundLines returns a line for each sound, with up to three specific names.
func soundLines(res *otograph.Result) []line {
	var lines []line
	for _, s := range subtitle.Sounds(res) {
		var names []string
		for _, e := range s.Names[:min(3, len(s.Names))] {
			names = append(names, fmt.Sprintf("%s %.0f %%", e.Class, e.Confidence*100))
		}
		lines = append(lines, line{s.Start, s.End, nil, "[" + strings.Join(names, ", ") + "]"})
	}
	return lines
}

// speakerColors holds the terminal colors of the speakers, in turn.
var speakerColors = []int{36, 33, 35, 32, 34, 31}

// joinPause is the longest pause (seconds) within a line of text.
const joinPause = 1.5

// sentenceLines returns one line per sentence: segments of one speaker are
// joined over pauses within a sentence.
func sentenceLines(segments []otograph.Segment) []line {
	var lines []line
	for i := range segments {
		s := segments[i]
		if n := len(lines) - 1; n >= 0 {
			last := lines[n].segment
			if s.Speaker == last.Speaker && s.Language == last.Language && s.Start-last.End < joinPause && !decode.EndsSentence(last.Text, s.Text) {
				last.Text += spec.Separated(last.Text, s.Text)
				last.Words = slices.Concat(last.Words, s.Words)
				last.End = max(last.End, s.End)
				lines[n].end = last.End
				continue
			}
		}
		lines = append(lines, line{s.Start, s.End, &s, ""})
	}
	return lines
}

// writeText prints a result for people: one line per sentence with its time and
// speaker, and sounds in order of time.
func writeText(w io.Writer, res *otograph.Result, style textStyle) error {
	lines := sentenceLines(res.Segments)
	lines = append(lines, soundLines(res)...)
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.start, b.start) })

	out := bufio.NewWriter(w)
	times := 0
	for _, l := range lines {
		times = max(times, len(clock(l.end)))
	}
	who := len("sound")
	for _, s := range res.Segments {
		who = max(who, len(s.Speaker))
	}
	if !res.Ran.Diarize && len(res.AudioEvents) == 0 {
		who = 0
	}
	paint := func(code, text string) string {
		if !style.color {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	for _, l := range lines {
		stamp := fmt.Sprintf("%*s – %*s", times, clock(l.start), times, clock(l.end))
		if l.segment == nil {
			fmt.Fprintf(out, "%s  %s  %s\n", paint("2", stamp), paint("2", fmt.Sprintf("%-*s", who, "sound")), paint("3", cleanLine(l.sound)))
			continue
		}
		fmt.Fprint(out, paint("2", stamp), "  ")
		if who > 0 {
			fmt.Fprint(out, paint(speakerColor(l.segment.Speaker), fmt.Sprintf("%-*s", who, cleanLine(l.segment.Speaker))), "  ")
		}
		fmt.Fprintln(out, textfile.Isolate(cleanLine(l.segment.Text)))
		if style.words {
			indent := strings.Repeat(" ", 2*times+3)
			for _, w := range l.segment.Words {
				fmt.Fprintf(out, "%s  %8.2f – %.2f  %3.0f %%  %s%s\n", indent, w.Start, w.End, w.Probability*100, cleanLine(w.Word), reservations(w))
			}
		}
	}
	for _, w := range spec.OfAudio(res.Warnings) {
		fmt.Fprintf(out, "\n%s\n", paint("1", "WARNING: "+w.Reason))
	}
	return out.Flush()
}

// reservations describes the uncertainty of a word.
func reservations(w otograph.Word) string {
	switch {
	case w.Doubtful && w.Interpolated:
		return "  (doubtful, time interpolated)"
	case w.Doubtful:
		return "  (doubtful)"
	case w.Interpolated:
		return "  (time interpolated)"
	}
	return ""
}

func speakerColor(speaker string) string {
	n := 0
	_, number, _ := strings.Cut(speaker, "_")
	if _, err := fmt.Sscan(number, &n); err != nil || n < 0 { // a name or no speaker gets the first color
		for _, b := range []byte(speaker) {
			n += int(b)
		}
	}
	return fmt.Sprint(speakerColors[n%len(speakerColors)])
}

// clock prints seconds as 1:02:03.4.
func clock(seconds float64) string {
	tenths := int64(seconds*10 + 0.5)
	h, m, s := tenths/36000, tenths/600%60, tenths%600
	if h > 0 {
		return fmt.Sprintf("%d:%02d:%02d.%d", h, m, s/10, s%10)
	}
	return fmt.Sprintf("%d:%02d.%d", m, s/10, s%10)
}

// summary returns a line about a run: length, language, tier, speakers, speed.
func summary(name string, res *otograph.Result, took time.Duration) string {
	parts := []string{name, clock(res.AudioDuration)}
	if res.Ran.ASR {
		parts = append(parts, fmt.Sprintf("language %s (%.0f %%)", res.Language, res.LanguageProbability*100), res.Tier.String()+" tier")
		if n := res.Stats.Cascade.Doubtful; n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s decoded again by the standard tier", n, plural(res.Stats.Cascade.Segments, "segment")))
		}
	}
	if res.Ran.Diarize {
		parts = append(parts, plural(res.NumSpeakers, "speaker"))
	}
	if res.Ran.AudioEvents {
		parts = append(parts, plural(len(soundLines(res)), "sound"))
	}
	if s := took.Seconds(); s > 0 {
		parts = append(parts, fmt.Sprintf("%.1f s, %.1f × real time", s, res.AudioDuration/s))
	}
	return strings.Join(parts, " · ")
}

// totals returns one line about all recordings of a run.
func totals(written int, failed []string) string {
	line := fmt.Sprintf("%d written", written)
	if len(failed) > 0 {
		line += fmt.Sprintf(", %d failed: %s", len(failed), strings.Join(failed, ", "))
	}
	return line
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
