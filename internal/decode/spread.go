package decode

import "github.com/otograph/otograph/audio"

// Spread returns up to the given seconds of speech as a sample of the whole
// recording: a third each from the beginning, the middle and the end of the
// speech. Shorter speech is returned unchanged.
func Spread(speech []audio.Span, seconds float64) []audio.Span {
	total := 0
	for _, s := range speech {
		total += s.Len()
	}
	part := int(seconds * audio.SampleRate / 3)
	if total <= 3*part {
		return speech
	}
	// The cuts are in seconds of speech, without the silence.
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
