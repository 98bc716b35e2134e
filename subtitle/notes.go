package subtitle

import (
	"slices"

	"github.com/otograph/otograph/spec"
)

// EstimateNote marks a result with interpolated word times, in the formats that
// have comments (VTT and CTM).
const EstimateNote = "Some word times are estimated by letters, not measured."

// notesOf returns the comments for a format that supports them.
func notesOf(f Format, r *spec.Result) (notes []string) {
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
