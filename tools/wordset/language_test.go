package main

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/texts"
)

// TestLanguagesOfSentences checks that sentences on which no model was trained
// are rarely taken for another language, and that most sentences in another
// language are detected.
func TestLanguagesOfSentences(t *testing.T) {
	const each = 400
	r := rand.New(rand.NewPCG(30, 2))
	languages := slices.Sorted(maps.Keys(voices))
	var right, wrong, alarms, seen int
	for _, said := range languages {
		g, err := readGrammar(filepath.Join("..", "training", "asr", "texts_"+said+".txt"))
		require.NoError(t, err)
		for range each {
			text := g.sentence(r, false)
			for _, expected := range languages {
				found := texts.OtherLanguage(text, expected, languages)
				switch {
				case expected == said:
					right++
					if found != "" {
						alarms++
						t.Logf("%s taken for %s: %s", said, found, text)
					}
				case expected != "zh" && said != "zh": // Chinese is recognized by its script
					wrong++
					if found != "" {
						seen++
					}
				}
			}
		}
	}
	t.Logf("false alarms %d of %d (%.2f %%), seen %d of %d in another language (%.1f %%)",
		alarms, right, 100*float64(alarms)/float64(right), seen, wrong, 100*float64(seen)/float64(wrong))
	assert.LessOrEqual(t, alarms, right/1000)
	assert.GreaterOrEqual(t, seen, wrong*6/10)
}
