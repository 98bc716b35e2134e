package whisper

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/engine/decode"
)

func TestLikeness(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"Rätolam", "Reto Lamm", 0.75},
		{"confu i", "ComfyUI", 5.0 / 7},
		{"Antiberta,", "AntiBERTa", 1},
		{"roads", "Rhodes", 3.0 / 6},
		{"", "abc", 0},
	} {
		assert.InDelta(t, c.want, likeness(lettersOf(c.a), lettersOf(c.b)), 1e-9, c.a)
		assert.InDelta(t, c.want, likeness(lettersOf(c.b), lettersOf(c.a)), 1e-9, c.a)
	}
}

// wordsOf returns words of one token each.
func wordsOf(tokens ...string) []decode.Word {
	var list []decode.Token
	for _, text := range tokens {
		list = append(list, decode.Token{Text: text})
	}
	return decode.Words(list)
}

func TestFindsMisspelledNames(t *testing.T) {
	names, short, unspelled := namesOf([]string{"ComfyUI", " Reto  Lamm ", "Sun", "", "Łódźka"}, openDemo(t).cpu)
	require.Len(t, names, 2)
	assert.Equal(t, []string{"Sun"}, short, "three letters are too few")
	assert.Equal(t, []string{"Łódźka"}, unspelled)
	for _, c := range []struct {
		tokens []string
		want   []sighting
	}{
		{[]string{" your", " conf", "u", " i", " folder"}, []sighting{{1, 3, true, "ComfyUI", 5.0 / 7}}},
		{[]string{" Retoul", "am", " and", " Reto", " Lam", "."}, []sighting{{3, 4, false, "Reto Lamm", 7.0 / 8}, {0, 1, true, "Reto Lamm", 0.75}}},
		{[]string{" Reto", " Lamm", " lives"}, nil},
		{[]string{" the", " comfort"}, nil},
		{nil, nil},
	} {
		got := sightings(wordsOf(c.tokens...), names)
		require.Len(t, got, len(c.want), c.tokens)
		for i := range got {
			assert.InDelta(t, c.want[i].likeness, got[i].likeness, 1e-9)
			got[i].likeness = c.want[i].likeness
			assert.Equal(t, c.want[i], got[i])
		}
	}
}

func TestCostOfNames(t *testing.T) {
	assert.Equal(t, nameCostPieced, sighting{pieced: true, likeness: 0.7}.cost())
	assert.Equal(t, nameCost, sighting{likeness: 0.7}.cost(), "words that the model knows stand more firmly")
	assert.Equal(t, nameCostPieced, sighting{likeness: 1}.cost(), "only the spelling differs")
}

func TestReplacedKeepsPunctuation(t *testing.T) {
	assert.Equal(t, ` "Reto Lamm",`, replaced(` "Rätolam",`, "Reto Lamm"))
	assert.Equal(t, " Zoë", replaced(" zoë", "Zoë"))
}

// The demo model writes "bottle"; a hotword with nearly the same letters
// replaces it if it is likely enough, an entirely different one does not.
func TestNamesInTheText(t *testing.T) {
	e := openDemo(t)
	c := clips[3]
	said := func(hotwords ...string) string {
		o := asr.DefaultOptions()
		o.Language, o.Hotwords = c.language, hotwords
		tr, err := e.Transcribe(t.Context(), read(t, c.name), c.speech(), o)
		require.NoError(t, err)
		require.Len(t, tr.Segments, 1)
		words := tr.Segments[0].Words
		assert.Equal(t, "my", words[3].Text)
		assert.Less(t, words[3].End, words[4].Start+0.05, "the name has the word's time")
		return tr.Segments[0].Text
	}
	assert.Equal(t, "Have you seen my bootle?", said("bootle"))
	assert.Equal(t, c.text, said("Bartholomew"))
	assert.Equal(t, c.text, said("Battley"), "too unlikely")
}

// TestNamesInAFullContext: a name has more tokens than the word that it would
// replace, and the prompt and the text leave no room for them.
func TestNamesInAFullContext(t *testing.T) {
	prompt := strings.Repeat("q", 40) // of which the last 31 tokens count
	plan := append(make([]int, 32), say(0.0)...)
	for _, b := range "bcdfghjklmnprstvwxzaeiou" {
		plan = append(plan, int(b))
	}
	e := openWindows(t, buildModel(testHeader, append(plan, say(1.0)[3:]...)), 30, Options{})
	pcm, speech := far(1, 0, 1)
	o := greedy()
	o.InitialPrompt = prompt
	plain, err := e.Transcribe(t.Context(), pcm, speech, o)
	require.NoError(t, err)
	require.NotEmpty(t, textsOf(plain))
	o.Hotwords = []string{"bcdfghjklmnprstvwxzáéíóú"}
	tr, err := e.Transcribe(t.Context(), pcm, speech, o)
	require.NoError(t, err)
	assert.Equal(t, textsOf(plain), textsOf(tr))
}
