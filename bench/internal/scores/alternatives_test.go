package scores

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
	assert.Equal(t, "one uh two gonna", WithoutMarks("one (uh) two { gonna / going to }"))
	assert.Equal(t, "c", WithoutMarks("{ @ / a } c"))
}

// FuzzResolve: the reference has no more errors with its best alternatives than
// with its first ones.
func FuzzResolve(f *testing.F) {
	f.Add("a (b) { c / d e } f", "a d f")
	f.Fuzz(func(t *testing.T, reference, hypothesis string) {
		hyp := strings.Fields(hypothesis)
		errors := func(text string) int { return CompareWords(strings.Fields(text), hyp).Errors() }
		assert.LessOrEqual(t, errors(Resolve(reference, hypothesis, strings.Fields)), errors(WithoutMarks(reference)))
	})
}
