package subtitle

import (
	"cmp"
	"slices"

	"github.com/otograph/otograph/spec"
)

// flicker is the duration, in seconds, below which a subclass of a sound is
// another name for it and not a separate sound.
const flicker = 2

// Sound is one sound with all names under which it was detected.
type Sound struct {
	// Start and End are in seconds.
	Start, End float64
	// Names holds the classes without duplicates: first those detected for most
	// of the sound's time, from the most specific to the most general, then
	// those detected only briefly.
	Names []spec.AudioEvent
}

// Sounds merges the sound events of a result that describe the same sound, and
// returns the longest first: a piano is also a keyboard instrument, a musical
// instrument and music. It omits silence, and speech if there is a transcript.
func Sounds(r *spec.Result) []Sound {
	events := slices.Clone(r.AudioEvents)
	slices.SortStableFunc(events, func(a, b spec.AudioEvent) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	var out []Sound
	for _, e := range events {
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
	for i := range out {
		out[i].Names = out[i].ordered()
	}
	return out
}

// has reports whether an event, which is no longer than the sound, is another
// name for it: both have the same times, or one class includes the other and
// the event covers either most of the sound's time or only a moment.
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

// kin reports whether two classes are the same or one includes the other.
func kin(a, b string) bool {
	x, known := spec.LookupEventClass(a)
	y, both := spec.LookupEventClass(b)
	return a == b || known && both && (x.Includes(y) || y.Includes(x))
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
