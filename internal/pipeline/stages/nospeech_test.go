package stages

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// TestDiscardByNoSpeechProbability checks that a segment's no-speech
// probability is the mean of the detector's and the recognizer's, and that
// segments above the threshold are removed.
func TestDiscardByNoSpeechProbability(t *testing.T) {
	probs := make([]float32, 100) // 3.2 s: half a second each of 1, 0.5, 0.1, then zeros
	for i := range probs[:48] {
		probs[i] = []float32{1, 0.5, 0.1}[i/16]
	}
	heard := &Speech{Probabilities: coarse(probs)}
	segments := func() []asr.Segment {
		return []asr.Segment{
			{Start: 0, End: 0.512, NoSpeechProb: 0.1, Text: "sure"},
			{Start: 0.512, End: 1.024, NoSpeechProb: 0.2, Text: "fair"},
			{Start: 1.024, End: 1.536, NoSpeechProb: 0.4, Text: "faint"},
			{Start: 10, End: 11, NoSpeechProb: 0.3, Text: "behind the end"},
		}
	}
	for _, test := range []struct {
		threshold float64
		recognize bool
		want      []string
	}{
		{1, true, []string{"sure", "fair", "faint", "behind the end"}},
		{0.66, true, []string{"sure", "fair", "faint", "behind the end"}},
		{0.6, true, []string{"sure", "fair", "behind the end"}},
		{0.3, true, []string{"sure", "behind the end"}},
		{0, true, nil},
		{0.6, false, []string{"sure", "fair", "behind the end"}},
		{0.4, false, []string{"sure", "behind the end"}},
	} {
		tr := &asr.Transcript{Segments: segments()}
		discard(heard, tr, asr.Abilities{NoSpeech: test.recognize}, test.threshold)
		var left []string
		for _, s := range tr.Segments {
			left = append(left, s.Text)
		}
		assert.Equal(t, test.want, left, "%+v", test)
		assert.Equal(t, 4-len(left), tr.Stats.Discarded)
	}
}

// TestRejectTextWithoutSpeech checks that a text is removed if neither model is
// confident about any of its segments, and kept as a whole otherwise.
func TestRejectTextWithoutSpeech(t *testing.T) {
	probs := make([]float32, 124) // a second each of 1, 0.6, 0.1, 0.1
	for i := range probs {
		probs[i] = []float32{1, 0.6, 0.1, 0.1}[i/31]
	}
	heard := &Speech{Probabilities: coarse(probs), Spans: []audio.Span{{Start: audio.SampleRate * 92 / 100, End: audio.SampleRate * 23 / 10}}}
	for _, test := range []struct {
		name     string
		segments []asr.Segment
		left     int
	}{
		{"in the clearest part of a spot", []asr.Segment{sentence(0.93, 0.99, "a", 0.3)}, 0},
		{"no text", nil, 0},
		{"unsure of all", []asr.Segment{sentence(1, 1.9, "a", 0.6), sentence(2, 2.9, "b", 0.3)}, 0},
		{"long", []asr.Segment{sentence(1, 1.9, "a", 0.6), sentence(2, 3.2, "b", 0.3)}, 2},
		{"speech at one", []asr.Segment{sentence(0, 0.9, "a", 0.3), sentence(2, 2.9, "b", 0.3)}, 2},
		{"sure of one", []asr.Segment{sentence(1, 1.9, "a", 0.6), sentence(2, 2.9, "b", 0.8)}, 2},
		{"not calibrated, unlikely", []asr.Segment{{Start: 1, End: 1.9, AvgLogProb: -1}}, 0},
		{"not calibrated, likely", []asr.Segment{{Start: 1, End: 1.9, AvgLogProb: -0.3}}, 1},
		{"after the detector's last window", []asr.Segment{sentence(5, 6, "a", 0.3)}, 1},
	} {
		tr := &asr.Transcript{Segments: test.segments}
		reject(heard, tr)
		assert.Len(t, tr.Segments, test.left, test.name)
		assert.Equal(t, len(test.segments)-test.left, tr.Stats.Discarded, test.name)
	}
}

// TestHoldBackPassesFinalSentences checks that sentences are passed on once
// they can no longer be rejected.
func TestHoldBackPassesFinalSentences(t *testing.T) {
	var told [][]asr.Segment
	none := &Speech{}
	tell := none.holdBack(func(s []asr.Segment) { told = append(told, s) })
	tell([]asr.Segment{sentence(0, 1.5, "a", 0.5)})
	assert.Empty(t, told)
	tell([]asr.Segment{sentence(2, 2.6, "b", 0.5), sentence(3, 4, "c", 0.5)})
	tell([]asr.Segment{sentence(5, 6, "d", 0.5)})
	require.Len(t, told, 2)
	assert.Len(t, told[0], 3)
	assert.Equal(t, "d", told[1][0].Text)
	assert.Nil(t, none.holdBack(nil))
}

// TestJoinSpots checks that the beginning of a sentence in a spot of noise moves
// to the rest of the sentence, also in sentences reported early, and that other
// text stays.
func TestJoinSpots(t *testing.T) {
	probs := make([]float32, 800)
	for i := range probs {
		probs[i] = 0.5
		if i == 16 || i >= 300 { // at 0.51 s, and from 9.6 s
			probs[i] = 0.9
		}
	}
	span := func(start, end float64) audio.Span {
		return audio.Span{Start: int(start * audio.SampleRate), End: int(end * audio.SampleRate)}
	}
	s := &Speech{Probabilities: coarse(probs), Spans: []audio.Span{span(0.4, 0.8), span(9.8, 14)}}
	at := func(start, end float64, text string) asr.Segment {
		return asr.Segment{Start: start, End: end, Text: text, Words: []asr.Word{{Text: text, Start: start, End: end}}}
	}
	for _, test := range []struct {
		name  string
		given []asr.Segment
		want  []string
	}{
		{"the first word", []asr.Segment{at(0.4, 0.8, "And"), at(10, 13, "so it was.")}, []string{"And so it was."}},
		{"the first word in the clearest part", []asr.Segment{at(0.512, 0.54, "And"), at(10, 13, "so it was.")}, []string{"And so it was."}},
		{"a whole sentence", []asr.Segment{at(0.4, 0.8, "Yes."), at(10, 13, "So it was.")}, []string{"Yes.", "So it was."}},
		{"clear speech", []asr.Segment{at(10, 10.4, "And"), at(13, 14, "so it was.")}, []string{"And", "so it was."}},
		{"a short pause", []asr.Segment{at(0.4, 0.8, "And"), at(2, 4, "so it was.")}, []string{"And", "so it was."}},
	} {
		var texts, early []string
		tell := s.holdBack(func(list []asr.Segment) {
			for _, segment := range list {
				early = append(early, segment.Text)
			}
		})
		for _, segment := range test.given {
			tell([]asr.Segment{segment})
		}
		for _, segment := range s.joinSpots(test.given) {
			texts = append(texts, segment.Text)
			assert.Equal(t, segment.Start, segment.Words[0].Start, test.name)
			for i := range segment.Words[1:] {
				assert.GreaterOrEqual(t, segment.Words[i+1].Start, segment.Words[i].End, test.name)
			}
		}
		assert.Equal(t, test.want, texts, test.name)
		assert.Equal(t, texts[:len(early)], append([]string{}, early...), test.name)
	}
	moved := s.joinSpots([]asr.Segment{at(0.4, 0.8, "And"), at(10, 13, "so it was.")})
	assert.InDelta(t, 9.8, moved[0].Start, 1e-9, "the beginning of the speech")
}
