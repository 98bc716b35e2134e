package diarize

import "github.com/otograph/otograph/audio"

// Windows are 1.5 s long and start every 0.75 s. If the segmenter has cut more
// than denseSpeech of speech by voices, windows do not overlap, and only their
// middleSamples are embedded: enough windows of each voice remain.
const (
	windowSamples = 3 * audio.SampleRate / 2
	hopSamples    = windowSamples / 2
	middleSamples = audio.SampleRate
	soleSamples   = 2 * audio.SampleRate // a stretch up to that long is one wide window
	denseSpeech   = 10 * 60 * audio.SampleRate
)

// windows cuts the speech segments of at least minSegment seconds: a segment of
// at most a window's length is one window; a longer one is cut every hop, and
// its last window is moved back to be complete and end with the segment.
// segment[i] is the index in speech of window i. Windows are ordered as
// segments are. Wide windows are equal parts of a segment instead, of at most
// windowSamples, or all of a short segment.
func windows(speech []audio.Span, minSegment float64, wide bool) (spans []audio.Span, segment []int) {
	add := func(s, start, end int) {
		spans = append(spans, audio.Span{Start: start, End: end})
		segment = append(segment, s)
	}
	for i, s := range speech {
		// In seconds, with half a sample for the rounding of the bounds.
		if s.Len() <= 0 || float64(s.Len())+0.5 < minSegment*audio.SampleRate {
			continue
		}
		if wide {
			n := (s.Len() + windowSamples - 1) / windowSamples
			if s.Len() <= soleSamples {
				n = 1
			}
			for k := range n {
				add(i, s.Start+s.Len()*k/n, s.Start+s.Len()*(k+1)/n)
			}
			continue
		}
		start := s.Start
		for ; start+windowSamples < s.End; start += hopSamples {
			add(i, start, start+windowSamples)
		}
		add(i, max(s.Start, s.End-windowSamples), s.End)
	}
	return spans, segment
}

// part returns the part of a stretch that is embedded: its middle, at most a
// number of samples long, or middleSamples if the windows are wide.
func (e *Embeddings) part(s audio.Span, most int) audio.Span {
	if e.wide {
		most = middleSamples
	}
	return middle(s, most)
}

// middle returns the middle of a stretch, at most a number of samples long.
func middle(s audio.Span, most int) audio.Span {
	rest := max(s.Len()-most, 0)
	return audio.Span{Start: s.Start + rest/2, End: s.End - (rest - rest/2)}
}

func samples(spans []audio.Span) (sum int) {
	for _, s := range spans {
		sum += s.Len()
	}
	return sum
}
