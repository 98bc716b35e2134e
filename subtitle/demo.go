package subtitle

// DemoNote is what Write says of a result that demonstration models found: as a
// comment in VTT, CTM and RTTM, and in the other formats, which have none that all
// their readers pass over, as a cue of the speaker DEMO before all others.
const DemoNote = "Made by demo models for synthetic voices; not a real transcript."

// demoSpeaker is whose cue DemoNote is.
const demoSpeaker = "DEMO"

// demoSeconds is how long a subtitle with DemoNote stays.
const demoSeconds = 5

// demoCue is DemoNote as a cue: over a whole recording in a format for editors
// and tables, for some seconds before the first cue where it is played.
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
