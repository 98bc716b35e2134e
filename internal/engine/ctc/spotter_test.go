package ctc

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// spotTokens are the blank, letters, and pieces with and without a space.
var spotTokens = []string{"", " b", "o", "r", "i", "s", " the", " bo", "a", " a", ",", "王", "李", "小", "明", "x"}

// spotRows returns log posteriors of rows that list the probabilities of their
// likely tokens; all tokens share the rest.
func spotRows(rows ...map[int]float64) (scores []float32, norms []float64) {
	for _, row := range rows {
		rest, left := 1.0, len(spotTokens)-len(row)
		for _, p := range row {
			rest -= p
		}
		for id := range spotTokens {
			p, ok := row[id]
			if !ok {
				p = rest / float64(left)
			}
			scores = append(scores, float32(math.Log(p)))
		}
	}
	return scores, make([]float64, len(rows))
}

func TestSpottable(t *testing.T) {
	v := NewVocabulary(spotTokens, 0)
	for word, want := range map[string]bool{"Boris": true, " boris ": true, "Bor": false, "": false, "żółw": false, "Bo-ris": true, "王李小": true} {
		assert.Equal(t, want, Spottable(word, v), word)
	}
}

func TestSpotter(t *testing.T) {
	v := NewVocabulary(spotTokens, 0)
	blank := map[int]float64{0: 0.98}
	// The model considers "boris" less likely than "the a".
	said := []map[int]float64{blank, {6: 0.6, 1: 0.3}, {2: 0.3, 0: 0.6}, {3: 0.5, 0: 0.4}, {8: 0.7, 4: 0.2}, {5: 0.3, 0: 0.6}, blank, blank}
	silence := []map[int]float64{blank, blank, blank, blank, blank, blank, blank, blank}
	sure := []map[int]float64{blank, {6: 0.98}, blank, {9: 0.98}, blank, {6: 0.98}, blank, blank}

	find := func(words []string, rows []map[int]float64) []Spotted {
		scores, norms := spotRows(rows...)
		return NewSpotter(words, v).Find(scores, norms, len(spotTokens))
	}
	got := find([]string{"Boris"}, said)
	require.Len(t, got, 1)
	assert.Equal(t, "Boris", got[0].Text)
	assert.Equal(t, [2]int{1, 5}, [2]int{got[0].First, got[0].Last})
	assert.InDelta(t, (math.Log(0.3/0.6)+math.Log(0.3/0.6)+math.Log(0.2/0.7)+math.Log(0.3/0.6))/5, got[0].LogProb, 1e-6)

	assert.Empty(t, find([]string{"Boris"}, silence), "in silence")
	assert.Empty(t, find([]string{"Boris"}, sure), "if the model is confident about another word")
	assert.Empty(t, find([]string{"Bor"}, said), "a word that is too short")
	assert.Nil(t, NewSpotter([]string{"Bor", "", "żółw"}, v), "no word is long enough and can be spelled")
	assert.Empty(t, find([]string{"zzzz"}, said))
	twice := find([]string{"Boris", "Borix", "boris"}, append(append([]map[int]float64{}, said...), said...))
	require.Len(t, twice, 2, "spoken twice, one word at each place")
	for i, s := range twice {
		assert.Equal(t, "Boris", s.Text)
		assert.Equal(t, 8*i+1, s.First)
	}
	chinese := []map[int]float64{blank, {12: 0.5, 11: 0.4}, blank, {13: 0.5}, {0: 0.6, 14: 0.3}, blank}
	got = find([]string{"李小明", "王小明"}, chinese)
	require.Len(t, got, 1)
	assert.Equal(t, "李小明", got[0].Text)
}

// TestSpotterMatchesExhaustiveSearch compares the loss of the best path with a
// search over all ways to write a word in a few rows.
func TestSpotterMatchesExhaustiveSearch(t *testing.T) {
	v := NewVocabulary(spotTokens, 0)
	scores, norms := spotRows(map[int]float64{1: 0.2, 7: 0.3, 0: 0.3}, map[int]float64{2: 0.4, 0: 0.3, 3: 0.1}, map[int]float64{3: 0.5, 0: 0.2, 2: 0.1},
		map[int]float64{4: 0.3, 3: 0.4, 0: 0.1}, map[int]float64{5: 0.6, 0: 0.2, 4: 0.1})
	width := len(spotTokens)
	var ways func(t int, text string, last int) float64
	ways = func(at int, text string, last int) float64 { // the best way to write the rest of "boris" from row at, the last token in the last row
		if at == len(norms) {
			if text == "boris" {
				return 0
			}
			return math.Inf(-1)
		}
		best := math.Inf(-1)
		top := math.Inf(-1)
		for id := range spotTokens {
			top = max(top, float64(scores[at*width+id]))
		}
		for id, token := range spotTokens {
			next := text
			switch {
			case id == 0 && (at == 0 || at == len(norms)-1):
				continue // a word begins and ends with a token
			case id != 0 && id != last:
				next += string(v.Solid[id])
				if len(next) > 5 || next != "boris"[:len(next)] || token == "" {
					continue
				}
			}
			best = max(best, float64(scores[at*width+id])-top+ways(at+1, next, id))
		}
		return best
	}
	got := NewSpotter([]string{"boris"}, v).Find(scores, norms, width)
	require.Len(t, got, 1)
	assert.InDelta(t, ways(0, "", -1)/5, got[0].LogProb, 1e-6)
}
