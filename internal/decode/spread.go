package decode

import "github.com/otograph/otograph/audio"

// Spread picks up to the given seconds of speech for a look at the whole
// recording: a third each from the beginning, the middle and the end of what is
// spoken. Less speech than that comes back as it is.
func Spread(speech []audio.Span, seconds float64) []audio.Span {
	total := 0
	for _, s := range speech {
		total += s.Len()
	}
	part := int(seconds * audio.SampleRate / 3)
	if total <= 3*part {
		return speech
	}
	// Cuts on the axis of speech alone, silence left out.
	cuts := []audio.Span{{Start: 0, End: part}, {Start: (total - part) / 2, End: (total + part) / 2}, {Start: total - part, End: total}}
	var out []audio.Span
	at := 0 // speech before the current stretch
	for _, s := range speech {
		for _, c := range cuts {
			from, to := max(c.Start-at, 0), min(c.End-at, s.Len())
			if from < to {
				out = append(out, audio.Span{Start: s.Start + from, End: s.Start + to})
			}
		}
		at += s.Len()
	}
	return out
}
