package onnx

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// finish scores a text written in the given tokens.
func finish(s *wordScorer, tokens []string) float64 {
	p := s.begin()
	for i := range tokens {
		p = s.step(p, i)
	}
	return s.finish(p)
}

func scoreOf(m *wordModel, tokens ...string) float64 {
	var text [][]byte
	for _, t := range tokens {
		text = append(text, []byte(t))
	}
	return finish(newWordScorer(m, text), tokens)
}

// words returns the score of n words with the given sum of log10 probabilities.
func words(n int, log10 float64) float64 { return float64(n)*wordBonus + lmWeight*math.Ln10*log10 }

func TestTextIsScoredByItsWords(t *testing.T) {
	m := parsed(t, small)
	for text, want := range map[string]float64{
		"":                 0,
		" the cat sat":     words(3, -0.1-0.05-0.15),
		"The CAT, sat":     words(3, -0.1-0.05-0.15),
		"“the” - cat sat":  words(3, -0.1-0.05-0.15),
		" the cat sat.":    words(3, -0.1-0.05-0.15-0.4),
		"the cat sat. The": words(4, -0.1-0.05-0.15-0.4-0.1),
		"...":              0,
		" catty":           words(1, -2), // back-off weights belong to listed words
		" the ca":          words(2, -0.1-2),
		" the cat's":       words(2, -0.1-2),
		"明明":               words(2, -0.5-0.9-0.9),
		"the明cat":          words(3, -0.1-0.2-0.25-0.9-0.6),
	} {
		assert.InDelta(t, want, scoreOf(m, strings.SplitAfter(text, "")...), 1e-5, "%q, a character a token", text)
		assert.InDelta(t, want, scoreOf(m, text), 1e-5, "%q, one token", text)
	}
}

func TestTokensMaySplitCharacters(t *testing.T) {
	m := parsed(t, small)
	assert.InDelta(t, scoreOf(m, "明", "the"), scoreOf(m, "\xe6", "\x98", "\x8e", "the"), 1e-9)
}

// TestUnknownWordScoredEarly checks that a prefix of no known word is scored as
// unknown before the word ends.
func TestUnknownWordScoredEarly(t *testing.T) {
	s := newWordScorer(parsed(t, small), [][]byte{[]byte(" ca"), []byte("x"), []byte("t"), []byte(" ")})
	begun := s.step(s.begin(), 0)
	assert.Zero(t, s.score(begun))
	assert.Zero(t, s.score(s.step(begun, 2)), "a word counts when it is complete")
	strange := s.step(begun, 1)
	assert.InDelta(t, words(1, -2), s.score(strange), 1e-5)
	assert.InDelta(t, words(1, -2), s.score(s.step(strange, 3)), 1e-5, "and not a second time")
}

func TestSparedWordsCostNothing(t *testing.T) {
	m := parsed(t, strings.NewReplacer("-0.7	sat", "-9.7	sat", "-2.0	<unk>", "-9	<unk>").Replace(small))
	s := newWordScorer(m, [][]byte{[]byte(" sat"), []byte(" zeb"), []byte("ra"), []byte(" the")})
	spared := s.sparing([]string{"Zebra crossing", " SAT"})
	score := func(s *wordScorer, tokens ...int) float64 {
		p := s.begin()
		for _, id := range tokens {
			p = s.step(p, id)
		}
		assert.InDelta(t, s.finish(p), s.score(s.step(p, 3)), 1e-9)
		return s.finish(p)
	}
	assert.Negative(t, score(s, 0))
	assert.Zero(t, score(spared, 0))
	assert.Negative(t, score(s, 1, 2))
	assert.Zero(t, score(spared, 1, 2))
	assert.Negative(t, score(spared, 1), "part of a word is not a word")
	assert.Zero(t, spared.score(spared.step(spared.begin(), 1)), "but may become a spared word")
	assert.InDelta(t, score(s, 3), score(spared, 3), 1e-9, "other words are unchanged")
}

func TestNilScorerScoresNothing(t *testing.T) {
	var s *wordScorer
	p := s.sparing([]string{"a"}).step(s.begin(), 3)
	assert.Zero(t, s.score(p))
	assert.Zero(t, s.finish(p))
}

// TestTokenDivisionIsIrrelevant checks that a text's score depends on its
// words, not on its tokens.
func TestTokenDivisionIsIrrelevant(t *testing.T) {
	m := parsed(t, small)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"the", "cat", "sat", "ca", "明", "é", " ", " ", ".", "'", "-", "T", "x", "한"}), 0, 12).Draw(t, "text"), "")
		var tokens []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "bytes")
			tokens, rest = append(tokens, rest[:n]), rest[n:]
		}
		if whole, got := scoreOf(m, text), scoreOf(m, tokens...); math.Abs(whole-got) > 1e-9 {
			t.Fatalf("%q: %g as one token, %g as %q", text, whole, got, tokens)
		}
	})
}
