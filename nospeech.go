package otograph

import (
	"math"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/vad"
)

// coarse returns probabilities in steps of 1/255: five hours are 560 KB.
func coarse(probs []float32) []byte {
	out := make([]byte, len(probs))
	for i, p := range probs {
		out[i] = byte(math.Round(255 * float64(min(max(p, 0), 1))))
	}
	return out
}

// silence returns the detector's probability of no speech between two times
// (seconds): one minus the mean over its windows. ok is false where the
// detector's probabilities are not known (a checkpoint of an earlier version).
func (s *speech) silence(start, end float64) (p float64, ok bool) {
	const seconds = float64(vad.Window) / audio.SampleRate
	from := min(max(int(start/seconds), 0), len(s.Probabilities))
	to := min(max(int(math.Ceil(end/seconds)), from), len(s.Probabilities))
	if from == to {
		return 0, false
	}
	sum := 0
	for _, p := range s.Probabilities[from:to] {
		sum += int(p)
	}
	return 1 - float64(sum)/float64(255*(to-from)), true
}

// discard sets the no-speech probability of the optimized tier's segments and
// removes those above the threshold. It is the mean of what the voice activity
// detector says and what the recognizer does (its blank where the tokens fire), or
// the detector's alone where the recognizer does not tell.
func (s *speech) discard(t *asr.Transcript, abilities asr.Abilities, threshold float64) {
	before := len(t.Segments)
	for i := range t.Segments {
		segment := &t.Segments[i]
		if silent, ok := s.silence(segment.Start, segment.End); ok && abilities.NoSpeech {
			segment.NoSpeechProb = (segment.NoSpeechProb + silent) / 2
		} else if ok {
			segment.NoSpeechProb = silent
		}
	}
	t.Segments = slices.DeleteFunc(t.Segments, func(segment asr.Segment) bool { return segment.NoSpeechProb > threshold })
	t.Stats.Discarded += before - len(t.Segments)
}

// A recording is taken for one without speech where its segments last hardlyLong
// seconds at most together, the detector's probability of silence is above
// hardlySpeech in each and the confidence below hardlySure
// (docs/performance.md#sounds-without-speech).
const (
	hardlyLong   = 2.0
	hardlySpeech = 0.35
	hardlySure   = 0.75
)

// reject removes all segments where they are short and neither the detector nor the
// recognizer is sure of any: knocks, barks and sneezes pass for speech for a moment,
// and a recognizer always finds words. One segment of which one of the two is sure,
// or of which one says nothing, keeps them all.
func (s *speech) reject(t *asr.Transcript) {
	length := 0.0
	for _, segment := range t.Segments {
		silent, known := s.silence(segment.Start, segment.End)
		if !known || silent <= hardlySpeech || segment.Confidence == nil || *segment.Confidence >= hardlySure {
			return
		}
		if length += segment.End - segment.Start; length > hardlyLong {
			return
		}
	}
	t.Stats.Discarded += len(t.Segments)
	t.Segments = nil
}

// surely returns tell without the sentences that reject may still remove: it waits until
// those told to it are longer than hardlyLong together.
func surely(tell func([]asr.Segment)) func([]asr.Segment) {
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
		if length > hardlyLong {
			tell(held)
			held = nil
		}
	}
}
