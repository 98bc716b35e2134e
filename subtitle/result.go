package subtitle

import "github.com/otograph/otograph/spec"

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
