package subtitle

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/otograph/otograph/spec"
)

// tier is a row of an annotation editor: ordered intervals, no overlap.
type tier struct {
	Name   string
	Parent string // name of the tier whose intervals contain this tier's, or ""
	Spans  []tierSpan
}

// tierSpan is an interval of a tier; times are milliseconds.
type tierSpan struct {
	Start, End int64
	Text       string
}

// noSpeaker is the tier of speech whose speaker is unknown.
const noSpeaker = "speech"

// tiers sorts cues into a tier per speaker in order of first appearance, each
// followed by a tier of its words if word times are known, and the sounds at
// the end. Overlapping sounds get additional tiers ("sounds 2" …).
func tiers(cues []Cue) []tier {
	var speech []*tier
	words := map[string]*tier{}
	var sounds []tier
	for _, c := range clean(cues) {
		start, end := span(c.Start, c.End)
		if c.Event {
			sounds = place(sounds, tierSpan{start, end, c.Text})
			continue
		}
		name := cmp.Or(c.Speaker, noSpeaker)
		i := slices.IndexFunc(speech, func(t *tier) bool { return t.Name == name })
		if i < 0 {
			i = len(speech)
			speech = append(speech, &tier{Name: name})
			words[name] = &tier{Name: name + " words", Parent: name}
		}
		start = max(start, lastEnd(speech[i].Spans))
		end = max(end, start+1)
		speech[i].Spans = append(speech[i].Spans, tierSpan{start, end, c.Text})
		words[name].Spans = appendWords(words[name].Spans, c.Words, start, end)
	}
	var out []tier
	for _, t := range speech {
		out = append(out, *t)
		if w := words[t.Name]; len(w.Spans) > 0 {
			out = append(out, *w)
		}
	}
	return append(out, sounds...)
}

func lastEnd(spans []tierSpan) int64 {
	if len(spans) == 0 {
		return 0
	}
	return spans[len(spans)-1].End
}

// place adds a sound to the first tier that is free at its time.
func place(sounds []tier, s tierSpan) []tier {
	for i := range sounds {
		if lastEnd(sounds[i].Spans) <= s.Start {
			sounds[i].Spans = append(sounds[i].Spans, s)
			return sounds
		}
	}
	name := "sounds"
	if len(sounds) > 0 {
		name = fmt.Sprintf("sounds %d", len(sounds)+1)
	}
	return append(sounds, tier{Name: name, Spans: []tierSpan{s}})
}

// appendWords adds a segment's words, inside the segment and without overlap.
// It drops a word for which no millisecond remains.
func appendWords(spans []tierSpan, words []spec.Word, start, end int64) []tierSpan {
	now := start
	for _, w := range words {
		text := cleanText(w.Word)
		from := max(milliseconds(cleanTime(w.Start)), now)
		to := min(max(milliseconds(cleanTime(w.End)), from+1), end)
		if text == "" || to <= from {
			continue
		}
		spans = append(spans, tierSpan{from, to, text})
		now = to
	}
	return spans
}

// TextGrid writes Praat's TextGrid in the long text format: an interval tier
// per speaker, a tier of each speaker's words if word times are known, and the
// sounds. duration is the recording's length in seconds; the grid is longer if
// a cue ends later. Without cues the grid has one empty tier, because Praat
// opens no grid without tiers.
func TextGrid(w io.Writer, duration float64, cues []Cue) error {
	rows := tiers(cues)
	if len(rows) == 0 {
		rows = []tier{{Name: noSpeaker}}
	}
	length := max(milliseconds(cleanTime(duration)), 1)
	for _, t := range rows {
		length = max(length, lastEnd(t.Spans))
	}
	for i := range rows {
		rows[i].Spans = fillGaps(rows[i].Spans, length)
	}
	return execute(w, "textgrid.txt", map[string]any{"Length": length, "Tiers": rows})
}

// fillGaps returns the spans with empty ones between them, from 0 to length,
// because an interval tier has no gaps.
func fillGaps(spans []tierSpan, length int64) []tierSpan {
	var out []tierSpan
	var now int64
	for _, s := range spans {
		if s.Start > now {
			out = append(out, tierSpan{now, s.Start, ""})
		}
		out = append(out, s)
		now = s.End
	}
	if now < length {
		out = append(out, tierSpan{now, length, ""})
	}
	return out
}

// writeEAF writes an annotation document of ELAN (format 3.0): a tier per
// speaker, below it a tier with the speaker's words if word times are known,
// and the sounds. media is the recording's file name; its address says that the
// file is next to the document. date is the time of writing. Every start and end
// has a slot, in order of time, as ELAN expects them; the list may be empty.
func writeEAF(w io.Writer, media string, date time.Time, cues []Cue) error {
	rows := tiers(cues)
	var times []int64
	for _, t := range rows {
		for _, s := range t.Spans {
			times = append(times, s.Start, s.End)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	annotations := 0
	return execute(w, "eaf.xml", map[string]any{
		"Date": date.Format(time.RFC3339), "Media": url.PathEscape(media), "Times": times, "Tiers": rows,
		"Slot":   func(at int64) int { i, _ := slices.BinarySearch(times, at); return i + 1 },
		"Number": func() int { annotations++; return annotations },
	})
}
