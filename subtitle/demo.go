package subtitle

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
