package stages

import (
	"slices"

	"github.com/otograph/otograph/asr"
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
// noSpeechSeconds seconds together and if, in each of them, the detector's
// probability of silence is above noSpeechSilence and the confidence below
// noSpeechConfidence (docs/measurements/speech-detection.md).
const (
	noSpeechSeconds    = 2.0
	noSpeechSilence    = 0.35
	noSpeechConfidence = 0.75
)

// reject removes all segments if they are short and neither the detector nor
// the recognizer is confident about any. Knocks, barks and sneezes are detected
// as speech for a moment, and a recognizer always finds words. A segment that
// one of the two is confident about, or has no value for, keeps all segments.
func reject(s *Speech, t *asr.Transcript) {
	length := 0.0
	for _, segment := range t.Segments {
		silent, known := s.Silence(segment.Start, segment.End)
		if !known || silent <= noSpeechSilence || segment.Confidence == nil || *segment.Confidence >= noSpeechConfidence {
			return
		}
		if length += segment.End - segment.Start; length > noSpeechSeconds {
			return
		}
	}
	t.Stats.Discarded += len(t.Segments)
	t.Segments = nil
}

// holdBack returns a function that passes sentences to tell once reject cannot
// remove them: when they are longer than noSpeechSeconds together.
func holdBack(tell func([]asr.Segment)) func([]asr.Segment) {
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
		if length > noSpeechSeconds {
			tell(held)
			held = nil
		}
	}
}
