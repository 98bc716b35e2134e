package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadReport(t *testing.T) {
	words, hz, err := readReport("espeak", "rate 100\nword 0 0 2\nword 50 3 3\nend 90\nword 100 8 2\nend 150\n", "Où est, là?", 160)
	require.NoError(t, err)
	assert.InDelta(t, 100, hz, 0)
	assert.Equal(t, []word{{0, 0.5, "Où"}, {0.5, 0.9, "est"}, {1, 1.5, "là"}}, words)

	words, _, err = readReport("flite", "rate 16000\nword 0.1 0.4 i\nword 0.4 0.6 don\nword 0.6 0 't\nword 0.6 0.9 know\n", "I don't know.", 16000)
	require.NoError(t, err)
	assert.Equal(t, []word{{0.1, 0.4, "i"}, {0.4, 0.6, "don't"}, {0.6, 0.9, "know"}}, words)

	for name, report := range map[string]string{
		"nothing":              "",
		"no words":             "rate 100\nend 5\n",
		"a line of other form": "rate 100\nword x\n",
		"outside the text":     "rate 100\nword 0 9 2\n",
		"after the sound":      "rate 100\nword 200 0 1\n",
	} {
		_, _, err := readReport("espeak", report, "Yes.", 160)
		assert.Error(t, err, name)
	}
}

func TestHeldOutSentences(t *testing.T) {
	g := &grammar{
		slots:  map[string][]string{"thing": {"book", "phone", "bag", "key"}, "num": {"one", "two", "three", "four", "five"}},
		frames: []string{"i bought {num} [new|old|big] {thing} and {num} {thing} ."},
	}
	a, b := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
	for range 5 {
		text := g.sentence(a, false)
		assert.Regexp(t, `^I bought \w+ (new|old|big) \w+ and \w+ \w+\.$`, text)
		assert.Equal(t, text, g.sentence(b, false), "the same seed draws the same sentences")
	}
}
