package decode

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

func tokens(texts ...string) []Token {
	var list []Token
	for i, s := range texts {
		list = append(list, Token{Text: s, Probability: 1 / float64(i+1), LogProb: -float64(i), Time: float64(i), ID: int32(i)})
	}
	return list
}

func texts(words []Word) []string {
	var list []string
	for _, w := range words {
		list = append(list, w.Text)
	}
	return list
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []string
		want []string
	}{
		{"pieces of words", []string{" Hel", "lo", ",", " wor", "ld", "!"}, []string{" Hello,", " world!"}},
		{"punctuation on its own", []string{" mot", " ?", " -", " oui"}, []string{" mot ?", " oui"}},
		{"a dash in a sentence", []string{" mot", " –", " donc", " oui"}, []string{" mot –", " donc", " oui"}},
		{"dialogue", []string{" –", "Oui", ".", " -", "No", "."}, []string{" Oui.", " No."}},
		{"a number below zero", []string{" -", "5", " degrees"}, []string{" -5", " degrees"}},
		{"opening marks go with what follows", []string{" (", "really", ")", " ¿", "Qué", "?"}, []string{" (really)", " ¿Qué?"}},
		{"leading punctuation", []string{" -", " Yes"}, []string{" Yes"}},
		{"contractions and hyphens", []string{" don", "'t", " well", "-", "known"}, []string{" don't", " well-known"}},
		{"Chinese by the character", []string{"你好", "，世", "界。"}, []string{"你", "好，", "世", "界。"}},
		{"Chinese with an English name", []string{"我用", " Go", "语言", "。"}, []string{"我", "用", " Go", "语", "言。"}},
		{"bytes of a character in two tokens", []string{"\xe4\xbd", "\xa0", "\xe5\xa5\xbd"}, []string{"你", "好"}},
		{"Thai keeps its marks", []string{"ที่นี่"}, []string{"ที่", "นี่"}},
		{"Korean has spaces", []string{" 안녕", "하세요", " 여러분"}, []string{" 안녕하세요", " 여러분"}},
		{"broken bytes are left out", []string{" a\xff", "b"}, []string{" ab"}},
		{"marks of direction are left out", []string{" \u202b", "שלום", " \u200fעולם\u202c"}, []string{" שלום", " עולם"}},
		{"nothing but spaces", []string{" ", "  "}, nil},
		{"nothing", nil, nil},
		{"symbols are words", []string{" 5", "%", " €", " &", " more"}, []string{" 5%", " €", " &", " more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, texts(Words(tokens(c.in...))))
		})
	}
}

func TestWordsKeepProbabilities(t *testing.T) {
	words := Words(tokens(" Hel", "lo", ",", " wor", "ld"))
	require.Len(t, words, 2)
	assert.InDelta(t, (1+0.5)/2, words[0].Probability, 1e-9, "the comma is not part of the word")
	assert.InDelta(t, (0.25+0.2)/2, words[1].Probability, 1e-9)
	assert.Equal(t, 3, words[0].Tokens, "the comma belongs to the sentence")
	assert.Equal(t, 2, words[1].Tokens)
	assert.Equal(t, []int32{0, 1, 2, 3, 4}, append(words[0].IDs, words[1].IDs...))
	assert.InDelta(t, -(0 + 1 + 2 + 3 + 4), words[0].LogProb+words[1].LogProb, 1e-9)
	assert.InDelta(t, 3, words[1].Start, 1e-9)
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{" Hello| wor|ld", "你|好，(|x)", "\xe4|\xbd|\xa0", "|| |", "¿|?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parts := strings.Split(s, "|")
		words := Words(tokens(parts...))
		n := 0
		for _, w := range words {
			require.True(t, utf8.ValidString(w.Text))
			require.NotEmpty(t, strings.TrimSpace(w.Text))
			require.False(t, math.IsNaN(w.Probability))
			n += w.Tokens
		}
		require.LessOrEqual(t, n, len(parts))
	})
}

func pieces(text string) []Word {
	var list []Word
	for _, w := range strings.Fields(text) {
		list = append(list, Word{Word: asr.Word{Text: " " + w}})
	}
	return list
}

func TestAlignPutsSilencesBetweenWords(t *testing.T) {
	words := pieces("one two, three four")
	Align(words, 0, 10, spans(1, 2, 5, 6))
	assert.InDelta(t, 1, words[0].Start, 1e-9)
	assert.InDelta(t, 2, words[1].End, 1e-9, "the silence moves to the comma")
	assert.InDelta(t, 5, words[2].Start, 1e-9)
	assert.InDelta(t, 6, words[3].End, 1e-9)
	assert.InDelta(t, words[0].End, words[1].Start, 1e-9)
	assert.InDelta(t, words[2].End-words[2].Start, 6.5/12*1, 0.05, "in proportion to letters: three has 5, four 4")

	words = pieces("alone")
	Align(words, 1.5, 1.8, spans(3, 4))
	assert.InDelta(t, 1.5, words[0].Start, 1e-9, "without speech between, the whole time counts")
	assert.InDelta(t, 1.8, words[0].End, 1e-9)
}

func TestAlignPutsNoWordInSlivers(t *testing.T) {
	words := pieces("and so it begins")
	Align(words, 1.95, 6.25, spans(0.5, 2, 2.4, 3.8, 6.2, 9))
	assert.InDelta(t, 2.4, words[0].Start, 1e-9, "0.05 s before the pause belong to what was said before")
	assert.InDelta(t, 3.8, words[3].End, 1e-9, "0.05 s past the pause belong to what follows")
	for i, w := range words {
		assert.Greater(t, w.End-w.Start, 0.1, "word %d", i)
	}
	words = pieces("yes no")
	Align(words, 1.95, 6.25, spans(0.5, 2, 6.2, 9))
	assert.InDelta(t, 1.95, words[0].Start, 1e-9, "with only slivers, one of them is used")
	assert.InDelta(t, 2, words[1].End, 1e-9)
}

func TestSettleWordTimes(t *testing.T) {
	words := []Word{{Word: asr.Word{Start: 0, End: 0.5}}, {Word: asr.Word{Start: 0.4, End: 3}}, {Word: asr.Word{Start: 2, End: 2}}, {Word: asr.Word{Start: 9, End: 9.5}}}
	Settle(words, spans(0.2, 1, 2.5, 4))
	assert.Equal(t, []Word{{Word: asr.Word{Start: 0.2, End: 0.5}}, {Word: asr.Word{Start: 0.5, End: 3}}, {Word: asr.Word{Start: 3, End: 3.01}}, {Word: asr.Word{Start: 3.99, End: 4}}}, words)
	Settle(nil, spans(1, 2))
	Settle(words, nil)
}

func TestSettleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var speech []audio.Span
		at := 0
		for range rapid.IntRange(1, 8).Draw(t, "spans") {
			at += rapid.IntRange(1, 3*second).Draw(t, "pause")
			end := at + rapid.IntRange(second/2, 5*second).Draw(t, "speech")
			speech = append(speech, audio.Span{Start: at, End: end})
			at = end
		}
		n := rapid.IntRange(1, 30).Draw(t, "words")
		words := make([]Word, n)
		for i := range words {
			words[i].Start = rapid.Float64Range(-1, 50).Draw(t, "start")
			words[i].End = words[i].Start + rapid.Float64Range(-1, 3).Draw(t, "length")
		}
		Settle(words, speech)
		before := 0.0
		for i, w := range words {
			require.GreaterOrEqual(t, w.Start, before-1e-9, "word %d", i)
			require.GreaterOrEqual(t, w.End-w.Start, 0.01-1e-9, "word %d", i)
			require.True(t, within(speech, w.Start), "word %d begins at %g", i, w.Start)
			require.True(t, within(speech, w.End), "word %d ends at %g", i, w.End)
			before = w.End
		}
	})
}

func within(speech []audio.Span, t float64) bool {
	for _, s := range speech {
		if a, b := s.Seconds(); t >= a-1e-6 && t <= b+1e-6 {
			return true
		}
	}
	return false
}
