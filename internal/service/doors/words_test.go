package doors

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/spec"
)

func TestWords(t *testing.T) {
	half := 0.5
	text := func(text string) spec.Segment { return spec.Segment{Start: 1, End: 2, Text: text, Confidence: &half} }
	for _, c := range []struct {
		seg  spec.Segment
		want []string
	}{
		{spec.Segment{}, nil},
		{text(" Good day. "), []string{"Good", "day."}},
		{text("今天好吗？ AI"), []string{"今", "天", "好", "吗？", "AI"}},
		{text("AI今天"), []string{"AI", "今", "天"}},
		{spec.Segment{Text: "a b", Words: []spec.Word{{Word: " x ", Start: 1, End: 2}, {Word: " "}}}, []string{"x"}},
	} {
		var got []string
		at := c.seg.Start
		for _, w := range Words(c.seg) {
			got = append(got, w.Word)
			assert.GreaterOrEqual(t, w.Start, at)
			assert.GreaterOrEqual(t, w.End, w.Start)
			at = w.End
		}
		assert.Equal(t, c.want, got)
	}
	last := Words(text("one two"))[1]
	assert.Equal(t, spec.Word{Word: "two", Start: 1.5, End: 2, Probability: 0.5, Interpolated: true}, last)
}

func FuzzWords(f *testing.F) {
	f.Add("Good day. 今天好吗？")
	f.Fuzz(func(t *testing.T, text string) {
		var all strings.Builder
		for _, w := range Words(spec.Segment{End: 1, Text: text}) {
			all.WriteString(w.Word)
			assert.NotEmpty(t, w.Word)
			assert.LessOrEqual(t, w.End, 1.000001)
		}
		assert.Equal(t, strings.Join(strings.Fields(text), ""), all.String(), "no letter is lost")
	})
}

func TestPlainDropsCaseAndPunctuation(t *testing.T) {
	for word, want := range map[string]string{"There.": "there", "don’t,": "don’t", "—": "—", "«Été»": "été", "3.5": "3.5"} {
		assert.Equal(t, want, Plain(word))
	}
}
