package decode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
)

func TestSpread(t *testing.T) {
	const second = audio.SampleRate
	short := []audio.Span{{Start: 0, End: 5 * second}, {Start: 10 * second, End: 20 * second}}
	assert.Equal(t, short, Spread(short, 30))
	long := []audio.Span{{Start: 0, End: 40 * second}, {Start: 100 * second, End: 160 * second}}
	assert.Equal(t, []audio.Span{
		{Start: 0, End: 10 * second},
		{Start: 105 * second, End: 115 * second}, // 45 … 55 of 100 seconds of speech
		{Start: 150 * second, End: 160 * second},
	}, Spread(long, 30))
}

// TestSpreadProperties checks that the sample lies in the speech, is in order,
// and has the requested length.
func TestSpreadProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var speech []audio.Span
		at, total := 0, 0
		for range rapid.IntRange(0, 20).Draw(t, "stretches") {
			at += rapid.IntRange(1, 100_000).Draw(t, "silence")
			n := rapid.IntRange(1, 400_000).Draw(t, "length")
			speech = append(speech, audio.Span{Start: at, End: at + n})
			at, total = at+n, total+n
		}
		got := Spread(speech, 30)
		sum, last := 0, 0
		for _, s := range got {
			assert.GreaterOrEqual(t, s.Start, last)
			assert.Greater(t, s.End, s.Start)
			inside := false
			for _, v := range speech {
				inside = inside || s.Start >= v.Start && s.End <= v.End
			}
			assert.True(t, inside)
			sum, last = sum+s.Len(), s.End
		}
		assert.Equal(t, min(total, 30*audio.SampleRate), sum)
	})
}
