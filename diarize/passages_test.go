package diarize

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// TestShortAnswersAreTurns: a short answer inside the turn of another speaker,
// without a pause, is a turn if a passage marks it as one utterance.
func TestShortAnswersAreTurns(t *testing.T) {
	const s = audio.SampleRate
	truth := []utterance{{audio.Span{Start: 0, End: 20 * s}, 0}, {audio.Span{Start: 20 * s, End: 40 * s}, 1}, {audio.Span{Start: 40 * s, End: 50 * s}, 0}}
	answer := audio.Span{Start: 50 * s, End: 50*s + 4*s/10}
	truth = append(truth, utterance{answer, 1}, utterance{audio.Span{Start: answer.End, End: 60 * s}, 0})
	e := newMadeUp(2, truth, 0.5)
	pcm := audio.FromSamples(make([]float32, 60*s))
	speech := []audio.Span{{Start: 0, End: 60 * s}}
	for _, c := range []struct {
		name     string
		passages []audio.Span
		turns    int
	}{
		{"no passages", nil, 3},
		{"the answer and its neighbors", []audio.Span{{Start: 47 * s, End: 50 * s}, answer, {Start: answer.End, End: 53 * s}}, 5},
		{"too short", []audio.Span{{Start: answer.Start, End: answer.Start + s/4}}, 3},
		{"beyond the recording", []audio.Span{{Start: 59 * s, End: 62 * s}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := DefaultOptions()
			opt.Passages = c.passages
			r, err := Diarize(t.Context(), e, pcm, speech, opt)
			require.NoError(t, err)
			assert.Len(t, r.Speakers, 2)
			require.Len(t, r.Turns, c.turns)
			if c.turns == 5 {
				start, end := answer.Seconds()
				assert.Equal(t, Turn{Start: start, End: end, Speaker: 1}, r.Turns[3])
			}
		})
	}
}

// TestSentencesAreCutOnlyWithProof: a change of label within a sentence is used
// only if the voice on each side is the label's.
func TestSentencesAreCutOnlyWithProof(t *testing.T) {
	parts := func() []piece {
		return []piece{{span(0, 10.7), 0}, {span(10.7, 18), 1}, {span(18, 30), 0}}
	}
	for _, c := range []struct {
		name      string
		change    float64 // the voice changes from 0 to 1
		utterance audio.Span
		cut       float64 // the labels change
	}{
		{"a short sentence of one voice", 10, span(10, 11.5), 10},
		{"its last words have the wrong label", 11.5, span(9.9, 11.4), 11.4},
		{"two voices", 10.7, span(9.7, 11.7), 10.7},
		{"a long sentence of one voice", 10.2, span(10.2, 15), 10.2},
		{"a long sentence of two voices", 10.7, span(8, 15), 10.7},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newMadeUp(2, []utterance{{span(0, c.change), 0}, {span(c.change, 18), 1}, {span(18, 30), 0}}, 0.3)
			whole, err := e.Embed(t.Context(), silence(30), []audio.Span{span(0, 6), span(12, 17)})
			require.NoError(t, err)
			centre := newMatrix(2, e.Dim())
			copy(centre.row(0), whole[0])
			copy(centre.row(1), whole[1])
			got, err := answered(t.Context(), &Embeddings{embedder: e, pcm: silence(30)}, parts(), centre, []audio.Span{c.utterance})
			require.NoError(t, err)
			cut := span(0, c.cut).End
			assert.Equal(t, []piece{{audio.Span{End: cut}, 0}, {audio.Span{Start: cut, End: span(0, 18).End}, 1}, {span(18, 30), 0}}, got)
		})
	}
}

// TestPassagesHaveTheVectorsOfTheirWindows: where wide windows cover most of a
// sentence, nothing is embedded again.
func TestPassagesHaveTheVectorsOfTheirWindows(t *testing.T) {
	made := &counted{Embedder: newMadeUp(2, []utterance{{span(0, 3), 0}, {span(3, 9), 1}}, 0.3)}
	e := &Embeddings{embedder: made, pcm: silence(9), wide: true, Windows: []audio.Span{span(0, 1.5), span(1.5, 3), span(3, 4.5), span(4.5, 6)}, vectors: newMatrix(4, made.Dim())}
	list, err := made.Embed(t.Context(), e.pcm, e.Windows)
	require.NoError(t, err)
	for i, v := range list {
		copy(e.vectors.row(i), v)
	}
	centre := centroids(e.vectors, []int{0, 0, 1, 1}, 2)
	for _, c := range []struct {
		name      string
		utterance audio.Span
		embedded  int // samples
	}{
		{"within windows", span(3.2, 5.8), 0},
		{"more within them than not", span(5, 6.9), 0},
		{"mostly without", span(5, 7.5), middleSamples},
		{"no speech", span(8.2, 8.9), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			made.samples = 0
			got, err := answered(t.Context(), e, []piece{{span(0, 5.5), 0}, {span(5.5, 6), 1}}, centre, []audio.Span{c.utterance})
			require.NoError(t, err)
			assert.Equal(t, c.embedded, made.samples)
			if c.utterance.Start < 8*audio.SampleRate {
				assert.Equal(t, 1, runsWithin(got, c.utterance)[0].speaker)
			}
		})
	}
}

// TestShortStretchesOfASentence: stretches of speech too short for a window
// belong to the speaker of the sentence around them, unless a piece has them.
func TestShortStretchesOfASentence(t *testing.T) {
	e := &Embeddings{Speech: []audio.Span{span(0, 2), span(2.2, 2.4), span(2.6, 3), span(5, 5.2)}}
	parts := []piece{{span(0, 2), 1}, {span(2.7, 3), 0}}
	sentence := piece{span(1, 4), 1}
	assert.Equal(t, []piece{{span(2.2, 2.4), 1}}, e.unknown(parts, sentence), "one is another's, one is after the sentence")
	assert.Empty(t, e.unknown([]piece{{span(0, 6), 0}}, sentence), "all have a speaker")
	assert.Equal(t, []piece{{span(1, 2), 1}, {span(2.2, 2.4), 1}, {span(2.6, 3), 1}}, e.unknown(nil, sentence))
}
