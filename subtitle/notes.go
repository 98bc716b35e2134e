package subtitle

import (
	"slices"

	"github.com/otograph/otograph/spec"
)

// DemoNote marks a result of demonstration models. VTT, CTM and RTTM have it as
// a comment. In the other formats, whose readers do not all skip comments, it
// is a first cue by the speaker DEMO.
const DemoNote = "Made by demo models for synthetic voices; not a real transcript."

// demoSpeaker is the speaker of DemoNote's cue.
const demoSpeaker = "DEMO"

// demoSeconds is how long DemoNote is displayed in subtitles.
const demoSeconds = 5

// demoCue returns DemoNote as a cue: in SRT for a few seconds, at most until
// the first cue, in the other formats for the whole recording.
func demoCue(f Format, duration float64, cues []Cue) Cue {
	c := Cue{End: duration, Speaker: demoSpeaker, Text: DemoNote}
	if f == FormatSRT {
		c.End = min(duration, demoSeconds)
		for _, other := range cues {
			c.End = min(c.End, other.Start)
		}
	}
	return c
}

// EstimateNote marks a result with interpolated word times, in the formats that
// have comments (VTT and CTM).
const EstimateNote = "Some word times are estimated by letters, not measured."

// notesOf returns the comments for a format that supports them.
func notesOf(f Format, r *spec.Result) (notes []string) {
	if r.Demo {
		notes = append(notes, DemoNote)
	}
	if f != FormatRTTM && estimated(r) {
		notes = append(notes, EstimateNote)
	}
	for _, w := range spec.OfAudio(r.Warnings) {
		notes = append(notes, w.Reason)
	}
	return notes
}

// estimated reports whether any word's times are interpolated.
func estimated(r *spec.Result) bool {
	return slices.ContainsFunc(r.Segments, func(s spec.Segment) bool {
		return slices.ContainsFunc(s.Words, func(w spec.Word) bool { return w.Interpolated })
	})
}
