package scores

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestResolve chooses alternatives as NIST's sclite does.
func TestResolve(t *testing.T) {
	for _, c := range [][3]string{
		{"one (uh) two { gonna / going to }", "one two going to", "one two going to"},
		{"one (uh) two { gonna / going to }", "one uh two gonna", "one uh two gonna"},
		{"one (uh) two { gonna / going to }", "", "one two gonna"},
		{"{ a / b / @ } c", "c", "c"},
		{"{ a / b / @ } c", "b c", "b c"},
		{"x { a b / c } y { d / e }", "x c y d e", "x c y d"},
		{"no marks", "other words here", "no marks"},
		{"{ not closed", "closed", "not closed"},
		{"", "a", ""},
	} {
		assert.Equal(t, c[2], Resolve(c[0], c[1], strings.Fields), "%s against %s", c[0], c[1])
	}
	for marked, want := range map[string]string{"one (uh) two { gonna / going to }": "one uh two gonna", "{ @ / a } c": "c"} {
		text, err := WithoutMarks(marked)
		require.NoError(t, err)
		assert.Equal(t, want, text)
	}
	for _, open := range []string{"{ not closed", "x { a } y { b / c", "{"} {
		_, err := WithoutMarks(open)
		assert.ErrorContains(t, err, `expected } after "{`, open)
	}
}

// FuzzResolve: the reference has no more errors with its best alternatives than
// with its first ones.
func FuzzResolve(f *testing.F) {
	f.Add("a (b) { c / d e } f", "a d f")
	f.Fuzz(func(t *testing.T, reference, hypothesis string) {
		hyp := strings.Fields(hypothesis)
		errors := func(text string) int { return CompareWords(strings.Fields(text), hyp).Errors() }
		if first, err := WithoutMarks(reference); err == nil {
			assert.LessOrEqual(t, errors(Resolve(reference, hypothesis, strings.Fields)), errors(first))
		}
	})
}
