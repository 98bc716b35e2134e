package otograph

import "github.com/otograph/otograph/subtitle"

// Cues are the result's segments, and with events its sound events, in the form
// that package subtitle writes as SRT, VTT, TSV or text. "Speech" events are
// left out where there is a transcript, which says it better.
func (r *Result) Cues(events bool) []subtitle.Cue {
	var cues []subtitle.Cue
	for _, s := range r.Segments {
		c := subtitle.Cue{Start: s.Start, End: s.End, Speaker: s.Speaker, Text: s.Text}
		for _, w := range s.Words {
			c.Words = append(c.Words, subtitle.Word{Text: w.Word, Start: w.Start, End: w.End, Probability: w.Probability})
		}
		cues = append(cues, c)
	}
	if !events {
		return cues
	}
	for _, e := range r.AudioEvents {
		if r.Ran.ASR && e.Class == "Speech" {
			continue
		}
		cues = append(cues, subtitle.Cue{Start: e.Start, End: e.End, Text: e.Class, Event: true})
	}
	return cues
}

// SpeakerTurns are the result's turns in the form that subtitle.RTTM writes.
func (r *Result) SpeakerTurns() []subtitle.Turn {
	turns := make([]subtitle.Turn, len(r.DiarizeSegments))
	for i, t := range r.DiarizeSegments {
		turns[i] = subtitle.Turn{Start: t.Start, End: t.End, Speaker: t.Speaker}
	}
	return turns
}
