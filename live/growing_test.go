package live

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestWordsOfBothTexts(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"So I", "So I think", "So I"},
		{"My fellow Ameri", "My fellow Americans", "My fellow"},
		{"Hello.", "Hello, world", "Hello"},
		{"Hello.", "Hello.", "Hello"},
		{"I don", "I don't", "I"},
		{"我们今天", "我们今夜", "我们今"},
		{"¿Qué tal?", "¿Qué tal, Ana?", "¿Qué tal"},
		{"a", "b", ""},
		{"one  two", "one two", "one"},
	} {
		assert.Equal(t, c.want, agreed(c.a, c.b), "%q and %q", c.a, c.b)
	}
}

func TestFinalTextKeepsShownWords(t *testing.T) {
	for _, c := range []struct {
		before, final, want string
		kept                bool
	}{
		{"", "Hello.", "Hello.", false},
		{"Hello", "Hello, world.", "Hello, world.", false},
		{"hello word", "Hello, world. And so on.", "hello word. And so on.", true},
		{"we are", "weary people", "we are people", true},
		{"Hello", "", "Hello", true},
		{"hello word and", "Hello, world", "hello word and", true},
		{"hello word and", "Hello, world, and so", "hello word and so", true},
		{"你好", "您好，世界", "你好，世界", true},
	} {
		got, kept := grown(c.before, c.final)
		assert.Equal(t, c.want, got, "%q, then %q", c.before, c.final)
		assert.Equal(t, c.kept, kept)
	}
}

// The text only grows, by whole words, for any hypotheses, and a final text that
// confirms it stays unchanged.
func TestTextOnlyGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab' ,.é今日")), 0, 12, -1)
		shown, last := "", ""
		for range rapid.IntRange(0, 6).Draw(t, "hypotheses") {
			next := text.Draw(t, "hypothesis")
			both, _ := grown(shown, agreed(last, next))
			assert.True(t, extends(both, shown), "%q after %q", both, shown)
			shown, last = both, next
		}
		final := text.Draw(t, "final")
		got, kept := grown(shown, final)
		assert.True(t, strings.HasPrefix(got, shown), "%q does not begin with %q", got, shown)
		assert.Equal(t, kept, got != final || !extends(final, shown))
	})
}
