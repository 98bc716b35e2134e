package texts

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"boris", "boris", 0}} {
		assert.Equal(t, c.want, EditDistance([]rune(c.a), []rune(c.b)), "%s %s", c.a, c.b)
		assert.Equal(t, c.want, EditDistance([]rune(c.b), []rune(c.a)))
	}
}
