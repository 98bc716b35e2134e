package align

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
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
