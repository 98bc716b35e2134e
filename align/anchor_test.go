package align

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/engine/ctc"
)

func TestMatch(t *testing.T) {
	assert.Equal(t, []pair{{0, 0}, {1, 1}, {3, 2}}, match(strings.Fields("a b c d"), strings.Fields("a b d e")))
	assert.Empty(t, match(nil, []string{"a"}))
	assert.Empty(t, match([]string{"", ""}, []string{"", ""}), "words without letters are not matched")
}

// TestMatchRepeatedText uses a repeated text, in which no run of words occurs
// only once.
func TestMatchRepeatedText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var text, heard []string
	for i := range 6000 {
		text = append(text, fmt.Sprint("w", i%100))
		if r.IntN(20) > 0 {
			heard = append(heard, text[i])
		}
	}
	assert.Greater(t, len(match(text, heard)), len(heard)*95/100)
}

func TestMatchIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 40)
		text, heard := words.Draw(t, "text"), words.Draw(t, "heard")
		last := pair{-1, -1}
		for _, p := range match(text, heard) {
			if text[p.text] != heard[p.recognized] || p.text <= last.text || p.recognized <= last.recognized {
				t.Fatalf("%v after %v", p, last)
			}
			last = p
		}
	})
}

func TestSectionsCoverEverything(t *testing.T) {
	var words []word
	var spots []int
	var pairs []pair
	for i := range 900 {
		words = append(words, word{letters: []rune("word")})
		spots = append(spots, 10*i)
		if i%50 != 7 {
			pairs = append(pairs, pair{i, i})
		}
	}
	parts := sections(words, spots, pairs, 9000)
	assert.Greater(t, len(parts), 10)
	at := section{}
	for _, p := range parts {
		assert.Equal(t, at.words[1], p.words[0])
		assert.Equal(t, at.frames[1], p.frames[0])
		assert.LessOrEqual(t, p.frames[1]-p.frames[0], 1000)
		at = p
	}
	assert.Equal(t, 900, at.words[1])
	assert.Equal(t, 9000, at.frames[1])
	for _, p := range bounded(section{[2]int{0, 900}, [2]int{0, 9000}}, words) {
		assert.LessOrEqual(t, (p.frames[1]-p.frames[0])*(p.words[1]-p.words[0])*4*cellsPerLetter, maxCells)
	}
}

// TestMatchLongRuns uses a run of equal words longer than a table's cell can
// count.
func TestMatchLongRuns(t *testing.T) {
	var text []string
	for i := range 1800 {
		text = append(text, fmt.Sprint("w", i%120))
	}
	pairs := match(text[:1680], text)
	assert.Len(t, pairs, 1680)
	for i, p := range pairs {
		assert.Equal(t, pair{i, i}, p)
	}
}

// TestMatchStaysInPlace checks that a repetitive text with recognition errors
// does not shift.
func TestMatchStaysInPlace(t *testing.T) {
	var text, heard []string
	for i := range 6000 {
		text = append(text, fmt.Sprint("w", i%100))
		if w := text[i]; i%23 == 7 {
			heard = append(heard, "other")
		} else {
			heard = append(heard, w)
		}
	}
	for _, p := range match(text, heard) {
		assert.InDelta(t, p.text, p.recognized, 20)
	}
}

// TestLongWordsAreWild checks that a single word, whether a number or
// unreadable text, cannot make the lattice large.
func TestLongWordsAreWild(t *testing.T) {
	tokens := []string{""}
	for r := 'a'; r <= 'z'; r++ {
		tokens = append(tokens, string(r))
	}
	v := ctc.NewVocabulary(tokens, 0)
	for _, text := range []string{strings.Repeat("7", 5000), "0." + strings.Repeat("3", 5000), strings.Repeat("ab", 50_000)} {
		words := prepare([]string{"a", text, "b"}, v)
		assert.True(t, words[1].wild)
		assert.Equal(t, 1, words[1].nodes(), "%.8s…", text)
		for _, s := range bounded(section{[2]int{0, 3}, [2]int{0, 900_000}}, words) {
			assert.LessOrEqual(t, s.cells(words), maxCells)
		}
	}
	long := prepare([]string{strings.Repeat("a", ctc.LongestWord)}, v)
	assert.Len(t, long[0].letters, ctc.LongestWord)
	assert.False(t, long[0].wild)
}
