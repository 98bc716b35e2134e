package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/spec"
)

const (
	// flicker is the number of seconds below which a subclass of a sound gets
	// no separate line.
	flicker = 2
	// faintSeconds and faintConfidence are how long and how sure at most what a
	// demonstration model hears is that the text leaves out.
	faintSeconds, faintConfidence = 1, 0.5
)

// sound is what was heard at one time under several names.
type sound struct {
	start, end float64
	names      []otograph.AudioEvent
}

// soundLines are the sounds, one line each: a piano is also a keyboard instrument,
// a musical instrument and music. Of more than three names those are said that say
// most.
func soundLines(res *otograph.Result) []line {
	var lines []line
	for _, s := range sounds(res) {
		if res.Demo && s.faint() {
			continue
		}
		var names []string
		for _, e := range s.ordered() {
			names = append(names, fmt.Sprintf("%s %.0f %%", e.Class, e.Confidence*100))
		}
		lines = append(lines, line{s.start, s.end, nil, "[" + strings.Join(names[:min(3, len(names))], ", ") + "]"})
	}
	return lines
}

// sounds brings the events together that are one sound, the longest first in each.
func sounds(res *otograph.Result) []sound {
	heard := slices.Clone(res.AudioEvents)
	slices.SortStableFunc(heard, func(a, b otograph.AudioEvent) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	var out []sound
	for _, e := range heard {
		if e.Class == "Silence" || res.Ran.ASR && e.Class == "Speech" {
			continue // the transcript says it better; the other formats keep them
		}
		i := slices.IndexFunc(out, func(s sound) bool { return s.has(e) })
		if i < 0 {
			out = append(out, sound{e.Start, e.End, []otograph.AudioEvent{e}})
			continue
		}
		out[i].names = append(out[i].names, e)
	}
	return out
}

// has reports whether an event, no longer than the sound, is another name of it: it
// takes the same time, or it is a kind of it, or it of a kind, and takes most of the
// time or next to none.
func (s sound) has(e otograph.AudioEvent) bool {
	if e.Start == s.start && e.End == s.end {
		return true
	}
	length := e.End - e.Start
	common := min(e.End, s.end) - max(e.Start, s.start)
	if common < length/2 || common < (s.end-s.start)/2 && length > flicker {
		return false
	}
	return slices.ContainsFunc(s.names, func(named otograph.AudioEvent) bool { return kin(e.Class, named.Class) })
}

// kin reports whether one class is a kind of the other, or both are the same.
func kin(a, b string) bool {
	x, known := spec.LookupEventClass(a)
	y, both := spec.LookupEventClass(b)
	return a == b || known && both && (x.Includes(y) || y.Includes(x))
}

// faint reports whether a sound is short, and unsure under each name.
func (s sound) faint() bool {
	sure := func(e otograph.AudioEvent) bool { return e.Confidence >= faintConfidence }
	return s.end-s.start < faintSeconds && !slices.ContainsFunc(s.names, sure)
}

// ordered returns the names, the most specific one first of those that are heard
// most of the time, then the more general ones, and at last what is only heard now
// and then. No name comes twice.
func (s sound) ordered() []otograph.AudioEvent {
	brief := func(e otograph.AudioEvent) int {
		if e.End-e.Start < (s.end-s.start)/2 {
			return 1
		}
		return 0
	}
	names := slices.Clone(s.names)
	slices.SortStableFunc(names, func(a, b otograph.AudioEvent) int {
		return cmp.Or(cmp.Compare(brief(a), brief(b)), cmp.Compare(generality(a.Class), generality(b.Class)), cmp.Compare(b.Confidence, a.Confidence))
	})
	var out []otograph.AudioEvent
	for _, e := range names {
		if !slices.ContainsFunc(out, func(o otograph.AudioEvent) bool { return o.Class == e.Class }) {
			out = append(out, e)
		}
	}
	return out
}

func generality(class string) int {
	c, _ := spec.LookupEventClass(class)
	if c.DisplayName != class {
		return 0
	}
	return c.Generality()
}
