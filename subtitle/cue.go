// Package subtitle writes timed text: subtitles (SubRip, WebVTT), documents to
// read (Markdown, DOCX), files of annotation editors (Praat's
// TextGrid, ELAN's EAF, Audacity's labels), and tables for programs
// (tab-separated values, NIST's CTM and RTTM). [Write] and [WriteFile] take a
// whole result; [SRT], [VTT] and [TextGrid] take cues.
//
// SRT and VTT are laid out for reading. A cue has at most two lines of 42
// columns. Long segments are split evenly at clauses, by the times of their
// words. Cues do not overlap, and each is shown long enough to be read if the
// next one leaves time. Speakers who talk simultaneously share a cue, sounds
// end when speech begins, and a monologue has no speaker number. [Options]
// changes these defaults. The other formats keep segments whole.
package subtitle

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

// Cue is a piece of text with its times in seconds.
type Cue struct {
	Start, End float64
	// Speaker is the speaker's name; empty if unknown.
	Speaker string
	Text    string
	// Words holds the words of Text with their times, in order; spaces around
	// them are ignored. Long cues are split by these times; without them, time
	// is distributed by length. Only CTM writes their probabilities.
	Words []spec.Word
	// Event marks a sound rather than speech: Text is its name ("Music") and is
	// written in brackets, without a speaker.
	Event bool
}

// clean returns the cues that have text, in order of time, with white space
// collapsed and control characters removed. Their times are valid for players:
// finite, not negative, the end after the start, and no spoken cue overlapping
// the next one of the same speaker. clean does not change its input.
func clean(cues []Cue) []Cue {
	out := make([]Cue, 0, len(cues))
	for _, c := range cues {
		c.Text, c.Speaker = cleanText(c.Text), cleanText(c.Speaker)
		if c.Text == "" {
			continue
		}
		if c.Event {
			c.Text, c.Speaker = "["+strings.Trim(c.Text, "[]")+"]", ""
		}
		c.Start = cleanTime(c.Start)
		c.End = max(cleanTime(c.End), c.Start)
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Cue) int { return cmp.Compare(a.Start, b.Start) })
	last := map[string]int{} // speaker → index of the last spoken cue
	for i := range out {
		if out[i].Event {
			continue
		}
		if j, ok := last[out[i].Speaker]; ok && out[j].End > out[i].Start {
			out[j].End = out[i].Start
		}
		last[out[i].Speaker] = i
	}
	return out
}

// maxTime limits times (seconds): a year is longer than any recording, and its
// milliseconds do not overflow.
const maxTime = 366 * 24 * 3600

func cleanTime(t float64) float64 {
	if math.IsNaN(t) || t < 0 {
		return 0
	}
	return min(t, maxTime)
}

// cleanText collapses white space with line ends to single spaces, and drops
// control characters, noncharacters and bytes that are not UTF-8.
func cleanText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Noncharacter_Code_Point, r), r == utf8.RuneError, r == '\ufeff':
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func milliseconds(t float64) int64 { return int64(math.Round(t * 1000)) }

// span returns the times in whole milliseconds. The end is at least one after
// the start, because players drop empty cues.
func span(from, to float64) (start, end int64) {
	start = milliseconds(from)
	return start, max(milliseconds(to), start+1)
}

// Cues returns a result's segments as SRT, VTT and TextGrid write them. With
// sounds, it adds a cue for each, with its most specific name (see [Sounds]).
func Cues(r *spec.Result, sounds bool) []Cue {
	cues := spoken(r)
	if sounds {
		for _, s := range Sounds(r) {
			cues = append(cues, Cue{Start: s.Start, End: s.End, Text: s.Names[0].Class, Event: true})
		}
	}
	return cues
}

// everything returns a result's segments and all its sound events, for editors
// and tables. "Speech" events are omitted if there is a transcript.
func everything(r *spec.Result) []Cue {
	cues := spoken(r)
	for _, e := range r.AudioEvents {
		if !r.Ran.ASR || e.Class != "Speech" {
			cues = append(cues, Cue{Start: e.Start, End: e.End, Text: e.Class, Event: true})
		}
	}
	return cues
}

func spoken(r *spec.Result) []Cue {
	cues := make([]Cue, 0, len(r.Segments))
	for _, s := range r.Segments {
		cues = append(cues, Cue{Start: s.Start, End: s.End, Speaker: s.Speaker, Text: s.Text, Words: s.Words})
	}
	return cues
}
