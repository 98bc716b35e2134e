package whisper

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// letters returns a token for every byte.
func letters(s string) []int32 {
	var tokens []int32
	for _, b := range []byte(s) {
		tokens = append(tokens, int32(b))
	}
	return tokens
}

// spelt reports whether the tree has a path of these tokens, ending in a leaf
// or not.
func (h *hotwords) spelt(tokens []int32) bool {
	at := h.nodes[0]
	for _, t := range tokens {
		children := h.nodes[at.first : at.first+at.count]
		i := slices.IndexFunc(children, func(n node) bool { return n.token == t })
		if i < 0 {
			return false
		}
		at = children[i]
	}
	return true
}

func TestHotwordSpellings(t *testing.T) {
	h, _, _ := newHotwords([]string{"iPhone", "  New   York "}, letters)
	require.NotNil(t, h)
	for _, s := range []string{"iPhone", " iPhone", "iphone", " Iphone", "IPHONE", "IPhone", "New York", " new york", "NEW YORK"} {
		assert.True(t, h.spelt(letters(s)), s)
	}
	assert.False(t, h.spelt(letters("phone")))
	assert.False(t, h.spelt(letters("New  York")))
	none, weak, unspelled := newHotwords([]string{"", "  "}, letters)
	assert.Nil(t, none)
	assert.Empty(t, weak)
	assert.Empty(t, unspelled)
	none, weak, unspelled = newHotwords([]string{"x"}, func(string) []int32 { return nil })
	assert.Nil(t, none, "no tokens in this vocabulary")
	assert.Empty(t, weak)
	assert.Equal(t, []string{"x"}, unspelled)
}

// TestWeakHotwords: a word that has more than two parts in every spelling gets
// no bonus for its first token, and is listed as weak.
func TestWeakHotwords(t *testing.T) {
	h, weak, unspelled := newHotwords([]string{"ab", " b ", "abc", ""}, letters)
	require.NotNil(t, h)
	assert.Equal(t, []string{"abc"}, weak)
	assert.Empty(t, unspelled)
	starts := map[float32]int{}
	for _, n := range h.nodes[1 : 1+h.nodes[0].count] {
		starts[n.bonus]++
	}
	assert.Positive(t, starts[hotStart])
}

func TestHotwordTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,4}`), 1, 6).Draw(t, "words")
		h, _, _ := newHotwords(words, letters)
		for _, w := range words {
			require.True(t, h.spelt(letters(w)))
		}
		seen := make([]int, len(h.nodes))
		for _, n := range h.nodes {
			for i := n.first; i < n.first+n.count; i++ {
				seen[i]++
			}
		}
		require.Zero(t, seen[0], "the root is nobody's child")
		for _, n := range seen[1:] {
			require.Equal(t, 1, n, "every other node has one parent")
		}
	})
}

// A token that continues one hotword and begins another is raised once.
func TestFavorLiftsOnce(t *testing.T) {
	tokens := map[string][]int32{"ab": {1, 2}, "b": {2}}
	h, _, _ := newHotwords([]string{"ab", "b"}, func(text string) []int32 { return tokens[text] })
	logits := []float32{0, -20, -6.5, -20, -20}
	h.favor(logits, []int32{1}, 4)
	assert.Equal(t, []float32{0, -20, -1.5, -20, -20}, logits)
}
