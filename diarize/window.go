package diarize

import "github.com/otograph/otograph/audio"

// Windows are 1.5 s long and start every 0.75 s.
const (
	windowSamples = 3 * audio.SampleRate / 2
	hopSamples    = windowSamples / 2
)

// windows cuts the speech segments of at least minSegment seconds: a segment up
// to one window long is one window; a longer one is cut every hop, and its last
// window is moved back so that it is complete and ends with the segment.
// segment[i] is the index in speech of window i. Windows come in order of time
// if the segments do.
func windows(speech []audio.Span, minSegment float64) (spans []audio.Span, segment []int) {
	add := func(s, start, end int) {
		spans = append(spans, audio.Span{Start: start, End: end})
		segment = append(segment, s)
	}
	for i, s := range speech {
		// Compared in seconds, with half a sample for the rounding of the
		// bounds.
		if s.Len() <= 0 || float64(s.Len())+0.5 < minSegment*audio.SampleRate {
			continue
		}
		if s.Len() <= windowSamples {
			add(i, s.Start, s.End)
			continue
		}
		start := s.Start
		for ; start+windowSamples < s.End; start += hopSamples {
			add(i, start, start+windowSamples)
		}
		add(i, s.End-windowSamples, s.End)
	}
	return spans, segment
}
