package subtitle

import "github.com/otograph/otograph/spec"

// Cues returns a result's segments, and with events its sound events, in the form that
// SRT, VTT and TextGrid write. "Speech" events are left out where there is a
// transcript, which says it better.
func Cues(r *spec.Result, events bool) []Cue {
	cues := make([]Cue, 0, len(r.Segments))
	for _, s := range r.Segments {
		cues = append(cues, Cue{Start: s.Start, End: s.End, Speaker: s.Speaker, Text: s.Text, Words: s.Words})
	}
	if !events {
		return cues
	}
	for _, e := range r.AudioEvents {
		if r.Ran.ASR && e.Class == "Speech" {
			continue
		}
		cues = append(cues, Cue{Start: e.Start, End: e.End, Text: e.Class, Event: true})
	}
	return cues
}

// turnsOf returns a result's speaker turns in the form that RTTM writes.
func turnsOf(r *spec.Result) []turn {
	turns := make([]turn, len(r.DiarizeSegments))
	for i, t := range r.DiarizeSegments {
		turns[i] = turn{Start: t.Start, End: t.End, Speaker: t.Speaker}
	}
	return turns
}
