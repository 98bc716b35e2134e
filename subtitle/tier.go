package subtitle

import (
	"cmp"
	"fmt"
	"slices"

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
