package subtitle

import (
	"cmp"
	"slices"

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

// Sound is what was heard at one time under several names.
type Sound struct {
	// Start and End are seconds.
	Start, End float64
	// Names are the names: the most specific one first of those that are heard most of
	// the time, then the more general ones, and at last what is only heard now and then.
	// No name comes twice.
	Names []spec.AudioEvent
}

// Sounds brings the sound events of a result together that are one sound, the longest
// first: a piano is also a keyboard instrument, a musical instrument and music. Silence
// is none, nor is speech where there is a transcript, nor what a demonstration model
// hears for a moment and is not sure of.
func Sounds(r *spec.Result) []Sound {
	heard := slices.Clone(r.AudioEvents)
	slices.SortStableFunc(heard, func(a, b spec.AudioEvent) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	var out []Sound
	for _, e := range heard {
		if e.Class == "Silence" || r.Ran.ASR && e.Class == "Speech" {
			continue
		}
		i := slices.IndexFunc(out, func(s Sound) bool { return s.has(e) })
		if i < 0 {
			out = append(out, Sound{e.Start, e.End, []spec.AudioEvent{e}})
			continue
		}
		out[i].Names = append(out[i].Names, e)
	}
	if r.Demo {
		out = slices.DeleteFunc(out, Sound.faint)
	}
	for i := range out {
		out[i].Names = out[i].ordered()
	}
	return out
}

// has reports whether an event, no longer than the sound, is another name of it: it
// takes the same time, or it is a kind of it, or it of a kind, and takes most of the
// time or next to none.
func (s Sound) has(e spec.AudioEvent) bool {
	if e.Start == s.Start && e.End == s.End {
		return true
	}
	length := e.End - e.Start
	common := min(e.End, s.End) - max(e.Start, s.Start)
	if common < length/2 || common < (s.End-s.Start)/2 && length > flicker {
		return false
	}
	return slices.ContainsFunc(s.Names, func(named spec.AudioEvent) bool { return kin(e.Class, named.Class) })
}

// kin reports whether one class is a kind of the other, or both are the same.
func kin(a, b string) bool {
	x, known := spec.LookupEventClass(a)
	y, both := spec.LookupEventClass(b)
	return a == b || known && both && (x.Includes(y) || y.Includes(x))
}

// faint reports whether a sound is short, and unsure under each name.
func (s Sound) faint() bool {
	sure := func(e spec.AudioEvent) bool { return e.Confidence >= faintConfidence }
	return s.End-s.Start < faintSeconds && !slices.ContainsFunc(s.Names, sure)
}

// ordered returns the names in the order of Sound.Names.
func (s Sound) ordered() []spec.AudioEvent {
	brief := func(e spec.AudioEvent) int {
		if e.End-e.Start < (s.End-s.Start)/2 {
			return 1
		}
		return 0
	}
	names := slices.Clone(s.Names)
	slices.SortStableFunc(names, func(a, b spec.AudioEvent) int {
		return cmp.Or(cmp.Compare(brief(a), brief(b)), cmp.Compare(generality(a.Class), generality(b.Class)), cmp.Compare(b.Confidence, a.Confidence))
	})
	var out []spec.AudioEvent
	for _, e := range names {
		if !slices.ContainsFunc(out, func(o spec.AudioEvent) bool { return o.Class == e.Class }) {
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
