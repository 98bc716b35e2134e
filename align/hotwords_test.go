package align

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

func TestPutHotword(t *testing.T) {
	segment := func(text string, starts ...float64) *asr.Segment {
		s := &asr.Segment{Text: text, End: starts[len(starts)-1]}
		for i, w := range strings.Fields(text) {
			s.Words = append(s.Words, asr.Word{Text: w, Start: starts[i], End: starts[i+1], Probability: 0.5, Tokens: 1})
		}
		return s
	}
	for _, c := range []struct {
		name, text string
		from, to   float64
		want       string
	}{
		{"one word", "I saw boring, today.", 0.6, 1.0, "I saw Boris, today."},
		{"two words", "I saw bore his today.", 0.6, 1.5, "I saw Boris today."},
		{"a part of a word stays", "I saw bore his today.", 0.95, 1.1, "I saw bore Boris today."},
		{"it is there", "I saw Boris, today.", 0.6, 1.0, "I saw Boris, today."},
		{"it is there, beside it", "I Boris, saw today.", 0.6, 1.0, "I Boris, saw today."},
		{"nothing is there", "I saw him today.", 5, 6, "I saw him today."},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := segment(c.text, 0, 0.3, 0.6, 1.0, 1.5, 2.0)
			putHotword(s, asr.Word{Text: "Boris", Start: c.from, End: c.to, Probability: 0.9})
			assert.Equal(t, c.want, s.Text)
			var words []string
			tokens := 0
			for i, w := range s.Words {
				words = append(words, w.Text)
				tokens += w.Tokens
				if i > 0 {
					assert.GreaterOrEqual(t, w.Start, s.Words[i-1].End)
				}
			}
			assert.Equal(t, strings.Fields(c.want), words)
			assert.Equal(t, len(strings.Fields(c.text)), tokens)
		})
	}
}

// A spotted hotword goes into the segment in which its middle lies, at the time
// of the recording that its window's rows have.
func TestPutSpotted(t *testing.T) {
	words := func(list ...asr.Word) asr.Segment {
		s := asr.Segment{Start: list[0].Start, End: list[len(list)-1].End}
		for _, w := range list {
			s.Text += " " + w.Text
		}
		s.Text, s.Words = s.Text[1:], list
		return s
	}
	script := &asr.Transcript{Segments: []asr.Segment{
		{Text: "no words", End: 60},
		words(asr.Word{Text: "I", Start: 10, End: 10.3}, asr.Word{Text: "saw", Start: 10.3, End: 10.6}),
		words(asr.Word{Text: "boring", Start: 10.6, End: 11}, asr.Word{Text: "today.", Start: 11, End: 12}),
	}}
	putSpotted(script, []Recognition{{
		Pieces: []audio.Span{{Start: 10 * audio.SampleRate, End: 12 * audio.SampleRate}}, Rows: &Rows{Shift: 0.1},
		Spotted: []Spotted{{Text: "Boris", First: 7, Last: 9, LogProb: -0.5}},
	}})
	assert.Equal(t, "I saw", script.Segments[1].Text)
	got := script.Segments[2]
	assert.Equal(t, "Boris today.", got.Text)
	assert.InDelta(t, math.Exp(-0.5), got.Words[0].Probability, 1e-12)
	assert.InDelta(t, 10.6, got.Words[0].Start, 1e-9)
}
