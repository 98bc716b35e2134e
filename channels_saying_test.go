package otograph

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// A channel of hold music that a detector took for speech is no speaker, and music
// between the sentences of another channel is not that speaker's.
func TestChannelsWithoutText(t *testing.T) {
	second := func(from, to int) audio.Span {
		return audio.Span{Start: from * audio.SampleRate, End: to * audio.SampleRate}
	}
	channel := func(n int, spans ...audio.Span) side { return side{channel: n, heard: &speech{Spans: spans}} }
	segment := func(start, end float64, side int) spokenSegment {
		return spokenSegment{asr.Segment{Start: start, End: end}, side}
	}
	said := []spokenSegment{segment(1.1, 2, 1), segment(3, 4, 2), segment(7, 8, 1)}
	sides := []side{
		channel(1, second(0, 60)),
		channel(0, second(1, 2), second(4, 5), second(7, 8)),
		channel(2, second(6, 7)),
	}
	out := saying(sides, said)
	assert.Equal(t, []side{channel(0, second(1, 2), second(7, 8)), channel(2, second(6, 7))}, out)
	assert.Equal(t, []spokenSegment{segment(1.1, 2, 0), segment(3, 4, 1), segment(7, 8, 0)}, said, "by their new numbers")
	assert.Len(t, sides[1].heard.Spans, 3, "what was heard stays as it was")
	assert.Empty(t, saying(sides[:1], nil))
}
