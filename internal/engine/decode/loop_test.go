package decode

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnloop(t *testing.T) {
	for _, c := range []struct {
		in, want string
		found    bool
	}{
		{"a b c", "a b c", false},
		{"no no no no no", "no no no no no", false},
		{strings.Repeat("no ", 20), "no", true},
		{"so " + strings.Repeat("Thank you. ", 9) + "bye", "so Thank you. bye", true},
		{strings.Repeat("we go home, ", 4) + "we go", "we go home,", true},
		{strings.Repeat("Right, right. ", 6), "Right,", true},
		{strings.Repeat("a b c d e ", 3), strings.TrimSpace(strings.Repeat("a b c d e ", 3)), false},
	} {
		got, found := Unloop(pieces(c.in))
		assert.Equal(t, c.want, strings.TrimSpace(strings.Join(texts(got), "")), c.in)
		assert.Equal(t, c.found, found, c.in)
	}
}
