package stages

import (
	"math"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/spec"
)

// discard sets the no-speech probability of the optimized tier's segments and
// removes the segments above the threshold. The probability is the mean of the
// voice activity detector's and the recognizer's (the blank's where the tokens
// fire), or only the detector's if the recognizer has none.
func discard(s *Speech, t *asr.Transcript, abilities asr.Abilities, threshold float64) {
	before := len(t.Segments)
	for i := range t.Segments {
		segment := &t.Segments[i]
		if silent, ok := s.Silence(segment.Start, segment.End); ok && abilities.NoSpeech {
			segment.NoSpeechProb = (segment.NoSpeechProb + silent) / 2
		} else if ok {
			segment.NoSpeechProb = silent
		}
	}
	t.Segments = slices.DeleteFunc(t.Segments, func(segment asr.Segment) bool { return segment.NoSpeechProb > threshold })
	t.Stats.Discarded += before - len(t.Segments)
}

// A recording counts as one without speech if its segments last at most
// noSpeechSeconds seconds together and if, for each of them, the detector's
// probability of silence is above noSpeechSilence in all of the speech that it
// touches, and the confidence below noSpeechConfidence
// (docs/measurements/speech-detection.md). The mean probability of the tokens,
// below noSpeechTokens, replaces a confidence that is not calibrated.
const (
	noSpeechSeconds    = 2.0
	noSpeechSilence    = 0.35
	noSpeechConfidence = 0.75
	noSpeechTokens     = 0.5
)

// reject removes all segments if they are short and neither the detector nor
// the recognizer is confident about any. Knocks, barks and sneezes are detected
// as speech for a moment, and a recognizer always finds words. All segments are
// kept if the detector or the recognizer is confident about one, or has no
// value for it.
func reject(s *Speech, t *asr.Transcript) {
	length := 0.0
	for _, segment := range t.Segments {
		silent, known := s.silenceAround(segment)
		sure := segment.Confidence != nil && *segment.Confidence >= noSpeechConfidence ||
			segment.Confidence == nil && math.Exp(segment.AvgLogProb) >= noSpeechTokens
		if length += segment.End - segment.Start; !known || silent <= noSpeechSilence || sure || length > noSpeechSeconds {
			return
		}
	}
	t.Stats.Discarded += len(t.Segments)
	t.Segments = nil
}

// spotPause is the least pause, in seconds, between a spot of noise and the
// sentence whose first words a recognizer put there. Such a segment is at most
// noSpeechSeconds long, ends inside the sentence, and the detector's probability
// of silence is above noSpeechSilence during all of the spot.
const spotPause = 2.0

// silenceAround returns Silence of a segment and the speech that it touches.
func (s *Speech) silenceAround(segment asr.Segment) (p float64, ok bool) {
	from, to := segment.Start, segment.End
	for _, span := range s.Spans {
		if start, end := span.Seconds(); start < segment.End && segment.Start < end {
			from, to = min(from, start), max(to, end)
		}
	}
	return s.Silence(from, to)
}

// spot reports whether a segment lies in a spot of noise, unless the text after
// it shows that its sentence ends there.
func (s *Speech) spot(segment asr.Segment, next string) bool {
	silent, known := s.silenceAround(segment)
	return known && silent > noSpeechSilence && segment.End-segment.Start <= noSpeechSeconds && !decode.EndsSentence(segment.Text, next)
}

// joinSpots moves the text in spots of noise to the sentences that it begins,
// and returns the remaining segments.
func (s *Speech) joinSpots(segments []asr.Segment) []asr.Segment {
	for i := len(segments) - 2; i >= 0; i-- {
		first, rest := segments[i], &segments[i+1]
		if rest.Start-first.End < spotPause || first.Language != rest.Language || !s.spot(first, rest.Text) {
			continue
		}
		start := rest.Start - 0.01*float64(len(first.Words))
		for _, span := range s.Spans {
			if from, to := span.Seconds(); from <= rest.Start && rest.Start <= to {
				start = max(min(from, start), rest.Start-(first.End-first.Start))
			}
		}
		step := (rest.Start - start) / float64(max(len(first.Words), 1))
		for k := range first.Words {
			w := &first.Words[k]
			w.Start, w.End, w.Interpolated = start+float64(k)*step, start+float64(k+1)*step, true
		}
		n, m := float64(len(first.Tokens)), float64(len(rest.Tokens))
		rest.AvgLogProb = (n*first.AvgLogProb + m*rest.AvgLogProb) / max(n+m, 1)
		rest.Start, rest.Text = start, first.Text+spec.Separated(first.Text, rest.Text)
		rest.Words, rest.Tokens = slices.Concat(first.Words, rest.Words), slices.Concat(first.Tokens, rest.Tokens)
		segments = slices.Delete(segments, i, i+1)
	}
	return segments
}

// holdBack returns a function that passes sentences to tell once reject cannot
// remove them, when they are longer than noSpeechSeconds together, and joinSpots
// cannot join the last one to the next.
func (s *Speech) holdBack(tell func([]asr.Segment)) func([]asr.Segment) {
	if tell == nil {
		return nil
	}
	var held []asr.Segment
	length := 0.0
	return func(segments []asr.Segment) {
		held = append(held, segments...)
		for _, segment := range segments {
			length += segment.End - segment.Start
		}
		if n := len(held); n > 0 && length > noSpeechSeconds && !s.spot(held[n-1], "") {
			tell(s.joinSpots(held))
			held = nil
		}
	}
}
