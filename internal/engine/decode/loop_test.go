package decode

import (
	"slices"
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

func TestRepeatedTokensAreDetected(t *testing.T) {
	repeat := func(times int, tokens ...int32) []int32 { return slices.Repeat(tokens, times) }
	for name, c := range map[string]struct {
		text []int32
		want int
	}{
		"no no no no":       {repeat(4, 7), 0},
		"nine times":        {repeat(9, 7), 0},
		"ten times":         {repeat(10, 7), 1},
		"thrice three":      {repeat(3, 1, 2, 3), 0},
		"three four times":  {repeat(4, 1, 2, 3), 3},
		"after other words": {append([]int32{9, 8}, repeat(4, 1, 2, 3)...), 3},
		"and gone on":       {append(repeat(4, 1, 2, 3), 5), 0},
		"a long one":        {repeat(4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24), 24},
	} {
		slices.Reverse(c.text)
		assert.Equal(t, c.want, Looping(c.text), name)
	}
}
