package diarize

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// TestAnswers: a short answer inside the turn of another speaker, without a
// pause, is a turn where a passage says that it is one utterance.
func TestAnswers(t *testing.T) {
	const s = audio.SampleRate
	truth := []said{{audio.Span{Start: 0, End: 20 * s}, 0}, {audio.Span{Start: 20 * s, End: 40 * s}, 1}, {audio.Span{Start: 40 * s, End: 50 * s}, 0}}
	answer := audio.Span{Start: 50 * s, End: 50*s + 4*s/10}
	truth = append(truth, said{answer, 1}, said{audio.Span{Start: answer.End, End: 60 * s}, 0})
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
