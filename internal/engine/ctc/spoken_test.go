package ctc

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/audio"
)

func seconds(s ...float64) (spans []audio.Span) {
	for i := 0; i < len(s); i += 2 {
		spans = append(spans, audio.Span{Start: int(s[i] * audio.SampleRate), End: int(s[i+1] * audio.SampleRate)})
	}
	return spans
}

// TestWordEndsWithItsStretchOfSpeech checks that a token in the pause after a
// stretch of speech does not extend its word to the next stretch.
func TestWordEndsWithItsStretchOfSpeech(t *testing.T) {
	speech := seconds(54.6, 55.8, 56.2, 58.6)
	words := []Spoken{{Start: 55.2, Last: 55.84}, {Start: 56.22, First: 56.3, Last: 56.5, Fresh: true}}
	setEnds(words, speech)
	assert.InDelta(t, 55.84, words[0].End, 1e-9)
	near := []Spoken{{Start: 56.1, Last: 56.15}, {Start: 57, First: 57.1, Last: 57.3}}
	setEnds(near, speech)
	assert.InDelta(t, 56.75, near[0].End, 1e-9, "a token just before a stretch belongs to it")
}
