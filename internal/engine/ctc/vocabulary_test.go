package ctc

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSpellSignsInsideWords checks that signs inside of a word are spelled if
// tokens write them there, and left out otherwise.
func TestSpellSignsInsideWords(t *testing.T) {
	v := NewVocabulary([]string{"<blk>", " o", "o", "'", "clock", "-", " twen", "ty", " one", "one", "'h", "a", "-x"}, 0)
	for word, want := range map[string]string{"o'clock": "o'clock", "twenty-one": "twentyone", "o’clock!": "o'clock", "a'h": "a'h", "'clock'": "clock"} {
		letters, ok := v.Spell(Fold(word))
		assert.True(t, ok, word)
		assert.Equal(t, want, string(letters))
	}
	_, ok := v.Spell(Fold("zzz"))
	assert.False(t, ok)
}
