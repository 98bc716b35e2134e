package align

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/ctc"
)

// textbook is a Viterbi search for a text in a few rows, written from its
// definition as a recursion over all paths. Tokens are single letters.
type textbook struct {
	rows    *Rows
	letters []rune // of all words
	borders []int  // the number of letters before each word, and in all
	id      map[rune]int
	known   map[[3]int]float64
}

// best returns the log probability of the likeliest way to write the letters from
// at on in the rows from t on, if the row before holds the token last (−1: none).
func (b *textbook) best(t, at, last int) float64 {
	key := [3]int{t, at, last}
	if v, ok := b.known[key]; ok {
		return v
	}
	v := math.Inf(-1)
	border := -1 // the index in borders
	for k, n := range b.borders {
		if n == at {
			border = k
		}
	}
	if t == b.rows.len() {
		if at == len(b.letters) {
			v = 0
		}
	} else {
		v = max(v, float64(b.rows.blanks[t])+b.best(t+1, at, -1))
		if at > 0 && last >= 0 { // the letter continues
			v = max(v, b.rows.logProb(t, last)+b.best(t+1, at, last))
		}
		if at < len(b.letters) {
			if id := b.id[b.letters[at]]; id != last {
				v = max(v, b.rows.logProb(t, id)+b.best(t+1, at+1, id))
			}
		}
		switch {
		case border == 0 || at == len(b.letters):
			v = max(v, b.rows.spoken(t)-outsideCost+b.best(t+1, at, -1))
		case border > 0:
			v = max(v, b.rows.spoken(t)-strayCost+b.best(t+1, at, -1))
		}
	}
	if border >= 0 && at < len(b.letters) { // leave the word out
		v = max(v, b.best(t, b.borders[border+1], last)-skipCost)
	}
	b.known[key] = v
	return v
}

// TestPathMatchesTextbookViterbi compares the path through the lattice with a
// textbook implementation's, for random posteriors and texts.
func TestPathMatchesTextbookViterbi(t *testing.T) {
	tokens := []string{"", "a", "b", "c", "d"}
	v := ctc.NewVocabulary(tokens, 0)
	r := rand.New(rand.NewPCG(8, 9))
	skipped, stray := 0, 0
	for n := range 2000 {
		b := &textbook{id: map[rune]int{'a': 1, 'b': 2, 'c': 3, 'd': 4}, known: map[[3]int]float64{}}
		var texts []string
		for range 1 + r.IntN(3) {
			text := ""
			for range 1 + r.IntN(3) {
				text += tokens[1+r.IntN(4)]
			}
			texts = append(texts, text)
			b.borders = append(b.borders, len(b.letters))
			b.letters = append(b.letters, []rune(text)...)
		}
		b.borders = append(b.borders, len(b.letters))
		length := 1 + r.IntN(14)
		scores, norms := make([]float32, length*len(tokens)), make([]float64, length)
		for i := range scores {
			scores[i] = float32(r.NormFloat64() * (0.5 + float64(n%4)))
		}
		for i := range norms {
			sum := 0.0
			for _, s := range scores[i*len(tokens):][:len(tokens)] {
				sum += math.Exp(float64(s))
			}
			norms[i] = math.Log(sum)
		}
		b.rows = NewRows(scores, norms, len(tokens), 0, 0.02)
		words := prepare(texts, v)
		l := newLattice(words, v)
		frames := make([]frame, length)
		for i := range frames {
			frames[i] = frame{b.rows, i}
		}
		path, ok := l.path(frames, &tables{})
		require.True(t, ok)
		row, got := newRow(v), 0.0
		for i, s := range path {
			row.read(frames[i], v.Marks)
			got += l.emit(&l.states[s], row)
			row.forget(frames[i])
		}
		marks, strays := l.marks(words, path, frames)
		for _, m := range marks {
			if !m.found() {
				got -= skipCost
				skipped++
			}
		}
		stray += len(strays)
		assert.InDelta(t, b.best(0, 0, -1), got, 1e-4, "%v in %d rows", texts, length)
	}
	assert.Greater(t, skipped, 100)
	assert.Greater(t, stray, 100)
}
