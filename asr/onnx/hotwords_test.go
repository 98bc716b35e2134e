package onnx

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sampleVocabulary(t testing.TB, symbols ...string) *vocabulary {
	t.Helper()
	v := newVocabulary("tokens.txt", append([]string{"<blk>"}, symbols...), writePieces)
	return v
}

// row returns log probabilities from weights by symbol; the other symbols share
// the remaining weight.
func row(v *vocabulary, p map[string]float64) []float32 {
	out := make([]float32, v.size())
	rest := 1.0
	for _, x := range p {
		rest -= x
	}
	for i, s := range v.symbols {
		x, ok := p[s]
		if !ok {
			x = max(rest, 1e-12) / float64(v.size()-len(p))
		}
		out[i] = float32(math.Log(x))
	}
	return out
}

func flat(rows ...[]float32) []float32 {
	var out []float32
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

func textFrom(v *vocabulary, e []emission) string {
	var s strings.Builder
	for _, m := range v.write(e) {
		s.WriteString(m.text)
	}
	return strings.TrimSpace(s.String())
}

func TestTokensFollowFrames(t *testing.T) {
	v := sampleVocabulary(t, "a", "b")
	h := head{vocab: v, blank: 0, shift: 0.04}
	one := func(s string) []float32 { return row(v, map[string]float64{s: 0.9}) }
	rows := flat(one("a"), one("a"), one("<blk>"), one("a"), one("b"), one("b"), one("<blk>"))
	got := h.decode(rows, 7, 3, 10, fusion{})
	require.Len(t, got, 3)
	assert.Equal(t, "aab", textFrom(v, got))
	assert.InDelta(t, 0, got[0].start, 1e-9)
	assert.InDelta(t, 0.08, got[0].end, 1e-9)
	assert.InDelta(t, 0.12, got[1].start, 1e-9)
	assert.InDelta(t, 0.16, got[2].start, 1e-9)
	assert.InDelta(t, 0.24, got[2].end, 1e-9)
	assert.InDelta(t, math.Log(0.9), got[0].logProb, 1e-6)
	// Raw logits give the same result once normalized.
	raw := make([]float32, len(rows))
	for i, x := range rows {
		raw[i] = x + 7
	}
	h.logits = true
	again := h.decode(raw, 7, 3, 10, fusion{})
	for i := range got {
		assert.Equal(t, got[i].id, again[i].id)
		assert.InDelta(t, got[i].logProb, again[i].logProb, 1e-5)
	}
}

// TestNormsOfClearBlanks checks that the sum is left out if the blank leads
// clearly, at an error below 0.001.
func TestNormsOfClearBlanks(t *testing.T) {
	h := head{blank: 1, logits: true}
	rows := []float32{-8.2, 0, -8.2, 0, 0, 0} // ln 3 + 7 is 8.1
	norms := h.norms(rows, 2, 3)
	assert.Equal(t, 0.0, norms[0])
	assert.InDelta(t, logSum(rows[:3]), norms[0], 1e-3)
	assert.InDelta(t, math.Log(3), norms[1], 1e-12)
}

func TestHotwordWinsACloseCall(t *testing.T) {
	v := sampleVocabulary(t, "▁al", "▁ox", "ice", "is", "▁t")
	h := head{vocab: v, blank: 0, shift: 0.04}
	b := row(v, map[string]float64{"<blk>": 0.99})
	rows := flat(b, row(v, map[string]float64{"▁al": 0.9}), b, row(v, map[string]float64{"is": 0.6, "ice": 0.3}), b)
	assert.Equal(t, "alis", textFrom(v, h.decode(rows, 5, v.size(), 10, fusion{})))
	boost := newFusion([]string{"Alice"}, v, nil)
	got := h.decode(rows, 5, v.size(), 10, boost)
	assert.Equal(t, "alice", textFrom(v, got))
	// The times are the tokens' in the network's output.
	require.Len(t, got, 2)
	assert.InDelta(t, 0.04, got[0].start, 1e-9)
	assert.InDelta(t, 0.12, got[1].start, 1e-9)
	assert.InDelta(t, 0.16, got[1].end, 1e-9)

	// A hotword is found neither inside another word nor if it breaks off.
	assert.Equal(t, "alis", textFrom(v, h.decode(rows, 5, v.size(), 10, newFusion([]string{"ice"}, v, nil))))
	assert.Equal(t, "alis", textFrom(v, h.decode(rows, 5, v.size(), 10, newFusion([]string{"al icecream"}, v, nil))))
}

func TestSpellableHotwords(t *testing.T) {
	pieces := sampleVocabulary(t, "▁al", "▁ox", "ice", "Is", "▁t", "o.", "王")
	unspaced := sampleVocabulary(t, "你", "好", "ab", "<0xE7>")
	for _, test := range []struct {
		v    *vocabulary
		word string
		want bool
	}{
		{pieces, "Alice", true},
		{pieces, "  ALICE  ox ", true},
		{pieces, "ice", true}, // at the beginning of a window
		{pieces, "is al", true},
		{pieces, "to", true}, // the text after the word begins no other word
		{pieces, "toice", false},
		{pieces, "al王", true},
		{pieces, "Zürich", false},
		{pieces, "alic", false},
		{pieces, " ", false},
		{pieces, strings.Repeat("ice", 70), false},
		{unspaced, "你好", true},
		{unspaced, "好ab", true},
		{unspaced, "好a", false},
		{unspaced, "您好", false},
	} {
		assert.Equal(t, test.want, newSpeller(test.v.texts(), test.v.spaced).spells(test.word), test.word)
	}
}

func TestHotwordIsNeverInventedInSilence(t *testing.T) {
	v := sampleVocabulary(t, "▁al", "ice", "▁wonder", "land")
	h := head{vocab: v, blank: 0, shift: 0.04}
	boost := newFusion([]string{"alice wonderland", "alice", "wonderland"}, v, nil)
	silence := row(v, map[string]float64{"<blk>": 0.98, "▁al": 0.005, "ice": 0.005, "▁wonder": 0.005})
	var rows []float32
	for range 500 {
		rows = append(rows, silence...)
	}
	assert.Empty(t, h.decode(rows, 500, v.size(), 10, boost))
}

func TestBoosterRevokesUnfinishedMatches(t *testing.T) {
	v := sampleVocabulary(t, "▁new", "▁york", "▁city", "s", "▁", "n", "纽", "约", "▁square", "▁s", "▁my", "▁hall")
	b := newBooster([]string{"New York", "new york city", "纽约", "york square", "my city guide", "city"}, v.texts(), v.spaced)
	id := func(s string) int { return slices.Index(v.symbols, s) }
	walk := func(symbols ...string) (float64, float64) {
		p := place{node: b.start}
		for i, s := range symbols {
			p = b.step(p, id(s), i > 0 && symbols[i-1] == s)
		}
		return b.score(p), b.finish(p)
	}
	york, city := 3*letterBonus+tokenBonus, 3*letterBonus+2*tokenBonus
	for _, c := range []struct {
		name          string
		tokens        []string
		score, finish float64
	}{
		{"nothing", nil, 0, 0},
		{"first word only", []string{"▁new"}, 3 * letterBonus, 0},
		{"whole", []string{"▁new", "▁york"}, york, york},
		{"longer one", []string{"▁new", "▁york", "▁city"}, city, city},
		{"longer one broken off keeps the shorter", []string{"▁new", "▁york", "▁new"}, york + 3*letterBonus, york},
		{"word goes on", []string{"▁new", "▁york", "s"}, 0, 0},
		{"pieces do not matter", []string{"▁", "n"}, letterBonus, 0},
		{"Han", []string{"纽", "约"}, 2 * signBonus, 2 * signBonus},
		{"Han inside a text", []string{"s", "纽", "约", "约"}, 2 * signBonus, 2 * signBonus},
		{"a token that is only repeated earns nothing", []string{"▁new", "▁york", "▁new", "▁york", "▁york"}, 2 * york, 2 * york},
		{"half of it", []string{"纽", "s"}, 0, 0},
		{"another one that its end begins", []string{"▁new", "▁york", "▁square"}, york + tokenBonus, york + tokenBonus},
		{"and that breaks off", []string{"▁new", "▁york", "▁s"}, york + letterBonus, york},
		{"one that is the end of a longer one", []string{"▁my", "▁city", "▁hall"}, 4 * letterBonus, 4 * letterBonus},
	} {
		score, finish := walk(c.tokens...)
		assert.InDelta(t, c.score, score, 1e-9, c.name)
		assert.InDelta(t, c.finish, finish, 1e-9, c.name)
	}
	assert.Nil(t, newBooster(nil, v.texts(), v.spaced))
	assert.Nil(t, newBooster([]string{"", "  "}, v.texts(), v.spaced))
}

// TestBeamWithoutMatchFindsTheLikeliestSequence compares the search with the
// sum over all paths, for outputs small enough to try them all.
func TestBeamWithoutMatchFindsTheLikeliestSequence(t *testing.T) {
	v := sampleVocabulary(t, "a", "b")
	h := head{vocab: v, blank: 0, shift: 0.04}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		const T = 5
		rows := make([]float32, T*3)
		for t := range T {
			var sum float64
			var w [3]float64
			for i := range w {
				w[i] = r.ExpFloat64() + 0.05
				sum += w[i]
			}
			for i := range w {
				rows[t*3+i] = float32(math.Log(w[i] / sum))
			}
		}
		total := map[string]float64{}
		for path := range 243 { // 3^5
			p, text, last := 0.0, "", 0
			for t, rest := 0, path; t < T; t, rest = t+1, rest/3 {
				id := rest % 3
				p += float64(rows[t*3+id])
				if id != 0 && id != last {
					text += v.symbols[id]
				}
				last = id
			}
			total[text] += math.Exp(p)
		}
		best := ""
		for s, p := range total {
			if p > total[best] {
				best = s
			}
		}
		assert.Equal(t, best, textFrom(v, h.decode(rows, T, 3, 10, fusion{})))
	}
}
