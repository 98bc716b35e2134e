package diarize

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// Speech without text keeps its speaker if the voice is one of the recording's,
// and neither music nor another voice becomes a speaker or gets a turn.
func TestDoubtfulSpeech(t *testing.T) {
	truth := []utterance{{span(0, 8), 0}, {span(9, 17), 1}, {span(18, 21), 0}, {span(22, 25), 2}, {span(26, 34), 1}}
	speech := []audio.Span{truth[0].Span, truth[1].Span, truth[2].Span, truth[3].Span, truth[4].Span}
	e, err := Embed(t.Context(), newMadeUp(3, truth, 0.3), silence(36), speech, DefaultOptions().EmbedOptions)
	require.NoError(t, err)
	doubtful := map[audio.Span]bool{truth[2].Span: true, truth[3].Span: true}
	r, err := Cluster(t.Context(), e.Filter(func(s audio.Span) bool { return !doubtful[s] }, true), DefaultOptions().ClusterOptions)
	require.NoError(t, err)
	assert.Len(t, r.Speakers, 2)
	assert.Equal(t, []Turn{{0, 8, 0}, {9, 17, 1}, {18, 21, 0}, {26, 34, 1}}, r.Turns)

	r, err = Cluster(t.Context(), e.Filter(func(audio.Span) bool { return false }, true), DefaultOptions().ClusterOptions)
	require.NoError(t, err)
	assert.Empty(t, r.Speakers, "nothing is surely speech")
	assert.Empty(t, r.Turns)
}
