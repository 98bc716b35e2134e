package whisper

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/engine/whispernet"
)

// The vocabulary of a made-up network: some words, the end, six special tokens,
// and 60 time marks.
const (
	tinyEOT    = 6
	tinySOT    = 7
	tinySilent = 8
	tinyBegin  = 13
	tinySize   = tinyBegin + 60
)

// script is a network whose answer depends only on the preceding tokens.
type script func(text []int32) []float32

// scripted is a decoder that derives the text of each column from its rows.
type scripted struct {
	t       require.TestingT
	scripts map[*whispernet.Window]script
	rows    map[*whispernet.Window][][256]int32 // the tokens by position and row
	columns int
}

func newScripted(t require.TestingT) *scripted {
	return &scripted{t: t, scripts: map[*whispernet.Window]script{}, rows: map[*whispernet.Window][][256]int32{}}
}

func (d *scripted) window(s script) *whispernet.Window {
	w := new(whispernet.Window)
	d.scripts[w] = s
	return w
}

func (d *scripted) step(columns []whispernet.Column) {
	d.columns += len(columns)
	for _, c := range columns {
		for len(d.rows[c.Window]) <= c.Position {
			d.rows[c.Window] = append(d.rows[c.Window], [256]int32{})
		}
		d.rows[c.Window][c.Position][c.Row] = c.Token
	}
	for _, c := range columns {
		if c.Logits == nil {
			continue
		}
		require.True(d.t, c.Path == nil || len(c.Path) == c.Position)
		var text []int32
		for p := range c.Position {
			row := uint8(0)
			if c.Path != nil {
				row = c.Path[p]
			}
			text = append(text, d.rows[c.Window][p][row])
		}
		copy(c.Logits, d.scripts[c.Window](append(text, c.Token)))
	}
}

// run takes searches to their ends, side by side.
func (d *scripted) run(searches ...*search) {
	for {
		var columns []whispernet.Column
		var open []*search
		for _, s := range searches {
			if !s.over {
				open, columns = append(open, s), s.columns(columns, tinySize)
			}
		}
		if len(open) == 0 {
			return
		}
		d.step(columns)
		for _, s := range open {
			s.advance()
		}
	}
}

var tinyRules = rules{blank: 0, eot: tinyEOT, begin: tinyBegin}

// tiny returns a search with the given number of beams.
func (d *scripted) tiny(r *rules, width int, s script) *search {
	return &search{
		rules: r, window: d.window(s), prompt: []int32{tinySOT, tinySOT + 2}, silent: tinySilent,
		quiet: 0.6, width: width, most: 12, random: rand.New(rand.NewPCG(1, 2)),
	}
}

func ids(h hypothesis) (list []int32) {
	for _, t := range h.tokens {
		list = append(list, t.id)
	}
	return list
}

// arbitrary returns a network with random-looking but reproducible answers.
func arbitrary(seed uint64, spread float64) script {
	return func(text []int32) []float32 {
		h := fnv.New64a()
		for _, t := range text {
			h.Write([]byte{byte(t)})
		}
		r := rand.New(rand.NewPCG(seed, h.Sum64()))
		logits := make([]float32, tinySize)
		for i := range logits {
			logits[i] = float32(spread * r.NormFloat64())
		}
		logits[tinySilent] = -20
		return logits
	}
}

// says returns a network that writes a text.
func says(tokens ...int32) script {
	return func(text []int32) []float32 {
		logits := make([]float32, tinySize)
		next := int32(tinyEOT)
		if k := len(text) - 2; k >= 0 && k < len(tokens) {
			next = tokens[k]
		}
		logits[next] = 12
		return logits
	}
}

func TestSearchFindsTheText(t *testing.T) {
	text := []int32{tinyBegin, 1, 2, 3, tinyBegin + 5, tinyBegin + 5, 4, tinyBegin + 9}
	for _, width := range []int{1, 2, 5} {
		d := newScripted(t)
		s := d.tiny(&tinyRules, width, says(text...))
		d.run(s)
		assert.Equal(t, text, ids(s.best()))
		assert.Less(t, s.noSpeech, 0.01)
		if width == 1 {
			assert.Equal(t, len(text)+1, s.steps)
		}
	}
}

// TestSearchChecksADraft: a draft changes the number of passes alone. A text that
// a greedy search would choose takes one pass.
func TestSearchChecksADraft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		net := arbitrary(rapid.Uint64().Draw(t, "seed"), 3)
		d := newScripted(t)
		plain := d.tiny(&plainRules, 1, net)
		d.run(plain)
		want := ids(plain.best())
		right := rapid.IntRange(0, len(want)).Draw(t, "right")
		wrong := rapid.SliceOfN(rapid.Int32Range(0, tinyEOT-1), 0, 11-right).Draw(t, "wrong")
		s := d.tiny(&plainRules, 1, net)
		s.draft = append(slices.Clone(want[:right]), wrong...)
		d.run(s)
		assert.Equal(t, plain.best(), s.best())
		assert.LessOrEqual(t, s.steps, plain.steps-min(right, plain.steps-1))
	})
}

// Nothing is decoded if the first pass finds no speech.
func TestSearchEndsWithoutSpeech(t *testing.T) {
	for _, prompt := range [][]int32{{tinySOT, tinySOT + 2}, {1, 2, tinySOT}} {
		d := newScripted(t)
		s := d.tiny(&tinyRules, 5, func(text []int32) []float32 {
			logits := make([]float32, tinySize)
			if text[len(text)-1] == tinySOT {
				logits[tinySilent] = 6
			}
			return logits
		})
		s.prompt, s.sot = prompt, slices.Index(prompt, tinySOT)
		d.run(s)
		assert.Equal(t, 1, s.steps)
		assert.Empty(t, s.best().tokens)
		assert.InDelta(t, math.Exp(6)/(math.Exp(6)+tinySize-1), s.noSpeech, 1e-6)
		s = d.tiny(&tinyRules, 5, d.scripts[s.window])
		s.prompt, s.sot, s.quiet = prompt, slices.Index(prompt, tinySOT), 1
		d.run(s)
		assert.Greater(t, s.steps, 1, "the caller wants it")
	}
}

// plainRules allows any text of words, which is simpler to search exhaustively.
var plainRules = rules{blank: -1, eot: tinyEOT, begin: tinyBegin, unmarked: true}

// everyText calls use with each text of up to most tokens and its score.
func everyText(net script, most int, use func(text []int32, sum float64)) {
	var grow func(text []int32, sum float64)
	grow = func(text []int32, sum float64) {
		logits := net(append([]int32{tinySOT, tinySOT + 2}, text...))
		plainRules.forbid(logits, text)
		plainRules.settle(logits)
		if len(text) > 0 {
			use(text, sum+float64(logits[tinyEOT]))
		}
		for i := range int32(tinyEOT) {
			if next := append(slices.Clone(text), i); len(next) < most {
				grow(next, sum+float64(logits[i]))
			} else {
				use(next, sum+float64(logits[i]))
			}
		}
	}
	grow(nil, 0)
}

// A beam as wide as the number of texts finds the best of all.
func TestWideBeamIsExhaustive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		net := arbitrary(rapid.Uint64().Draw(t, "network"), rapid.Float64Range(0.5, 4).Draw(t, "spread"))
		var want []int32
		best := math.Inf(-1)
		everyText(net, 3, func(text []int32, sum float64) {
			if mean := sum / float64(len(text)); mean > best {
				best, want = mean, text
			}
		})
		d := newScripted(t)
		s := d.tiny(&plainRules, 400, net)
		s.most = 3
		d.run(s)
		require.InDelta(t, best, s.best().mean(), 1e-4)
		require.Equal(t, want, ids(s.best()))
	})
}

// beamSearch is the published search in its plainest form: the best of twice as
// many candidates as beams are taken; ended ones make room for the others.
func beamSearch(net script, width, most int) (best []int32, mean float64) {
	type text struct {
		tokens []int32
		sum    float64
	}
	live, mean := []text{{}}, math.Inf(-1)
	for ended := 0; ended < width && len(live) > 0; {
		var all []text
		for _, l := range live {
			logits := net(append([]int32{tinySOT, tinySOT + 2}, l.tokens...))
			plainRules.forbid(logits, l.tokens)
			plainRules.settle(logits)
			for i := range int32(tinyEOT + 1) {
				if !math.IsInf(float64(logits[i]), -1) {
					all = append(all, text{append(slices.Clone(l.tokens), i), l.sum + float64(logits[i])})
				}
			}
		}
		slices.SortStableFunc(all, func(a, b text) int {
			if a.sum > b.sum {
				return -1
			}
			return 1
		})
		all = all[:min(len(all), 2*width)]
		live = nil
		spare := min(width, len(all))
		for k := range min(width, len(all)) {
			c := all[k]
			last := c.tokens[len(c.tokens)-1]
			if last != tinyEOT && len(c.tokens) < most {
				live = append(live, c)
				continue
			}
			ended++
			tokens := c.tokens
			if last == tinyEOT {
				tokens = tokens[:len(tokens)-1]
			}
			if m := c.sum / float64(max(len(tokens), 1)); m > mean {
				best, mean = tokens, m
			}
			for ; spare < len(all); spare++ {
				if c := all[spare]; c.tokens[len(c.tokens)-1] != tinyEOT && len(c.tokens) < most {
					live = append(live, c)
					spare++
					break
				}
			}
		}
	}
	return best, mean
}

func TestBeamSearchMatchesThePublishedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		net := arbitrary(rapid.Uint64().Draw(t, "network"), rapid.Float64Range(0.5, 4).Draw(t, "spread"))
		width, most := rapid.IntRange(1, 6).Draw(t, "beams"), rapid.IntRange(1, 9).Draw(t, "tokens")
		d := newScripted(t)
		s := d.tiny(&plainRules, width, net)
		s.most = most
		d.run(s)
		want, mean := beamSearch(net, width, most)
		for _, h := range s.ended {
			require.GreaterOrEqual(t, mean+1e-4, h.mean())
		}
		if mean > minLogProb {
			require.Equal(t, want, ids(s.best()))
		}
	})
}

// Other windows in the same pass make no difference.
func TestSearchesAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seeds := rapid.SliceOfN(rapid.Uint64(), 2, 5).Draw(t, "networks")
		temperatures := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.4, 1}), len(seeds), len(seeds)).Draw(t, "temperatures")
		make := func(d *scripted, i int) *search {
			s := d.tiny(&tinyRules, 1+i, arbitrary(seeds[i], 2))
			s.temperature = temperatures[i]
			return s
		}
		d := newScripted(t)
		var side []*search
		for i := range seeds {
			side = append(side, make(d, i))
		}
		d.run(side...)
		for i := range seeds {
			d := newScripted(t)
			alone := make(d, i)
			d.run(alone)
			require.Equal(t, alone.ended, side[i].ended)
		}
	})
}

func TestLoopEndsItsColumn(t *testing.T) {
	after := map[int32]int32{tinySOT + 2: tinyBegin, tinyBegin: 5, 5: 1, 1: 2, 2: 3, 3: 1}
	for _, width := range []int{1, 5} {
		d := newScripted(t)
		s := d.tiny(&tinyRules, width, func(text []int32) []float32 {
			logits := make([]float32, tinySize)
			if next, ok := after[text[len(text)-1]]; ok {
				logits[next] = 60
			}
			return logits
		})
		s.most = 200
		d.run(s)
		require.True(t, s.best().looped)
		assert.Equal(t, []int32{tinyBegin, 5, 1, 2, 3}, ids(s.best()), "once")
		assert.LessOrEqual(t, s.steps, 2+3*4+4*width, "it ends with the fourth time")
	}
}

// A loop is abandoned if another beam is better.
func TestBetterBeamReplacesTheLoop(t *testing.T) {
	d := newScripted(t)
	s := d.tiny(&tinyRules, 3, func(text []int32) []float32 {
		logits := make([]float32, tinySize)
		switch n := len(text) - 2; {
		case n == 0:
			logits[tinyBegin] = 12
		case n == 1:
			logits[1] = 12
		case text[len(text)-1] == 2:
			logits[tinyEOT] = 12
		default:
			logits[1], logits[2] = 12, 10
		}
		return logits
	})
	s.most = 100
	d.run(s)
	best := s.best()
	assert.False(t, best.looped)
	assert.Equal(t, int32(2), ids(best)[len(best.tokens)-1])
	assert.Less(t, len(best.tokens), 15)
}

// Samples are drawn by their probabilities.
func TestSamplesFollowProbabilities(t *testing.T) {
	logProbs := []float32{float32(math.Log(0.5)), float32(math.Log(0.3)), float32(math.Log(0.2)), forbidden}
	for _, temperature := range []float64{0.2, 0.7, 1} {
		random, n := rand.New(rand.NewPCG(3, 4)), 20000
		var count [4]float64
		for range n {
			count[draw(random, logProbs, temperature)]++
		}
		var sum float64
		for _, l := range logProbs {
			sum += math.Exp(float64(l) / temperature)
		}
		for i, l := range logProbs {
			assert.InDelta(t, math.Exp(float64(l)/temperature)/sum, count[i]/float64(n), 0.015)
		}
	}
}
