package whisper

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/engine/whispernet"
)

// published applies the rules line by line as OpenAI's ApplyTimestampRules does
// (whisper/decoding.py), with the rules applied before it.
func published(logits []float64, text []int32) []float64 {
	inf := math.Inf(-1)
	none := func(from, to int) {
		for i := from; i < to; i++ {
			logits[i] = inf
		}
	}
	none(tinyEOT+1, tinyBegin)
	if len(text) == 0 {
		logits[0], logits[tinyEOT] = inf, inf
	}
	lastWas := len(text) >= 1 && text[len(text)-1] >= tinyBegin
	penultimateWas := len(text) < 2 || text[len(text)-2] >= tinyBegin
	if lastWas {
		if penultimateWas {
			none(tinyBegin, tinySize)
		} else {
			none(0, tinyEOT)
		}
	}
	var marks []int32
	for _, t := range text {
		if t >= tinyBegin {
			marks = append(marks, t)
		}
	}
	if len(marks) > 0 {
		last := marks[len(marks)-1] + 1
		if lastWas && !penultimateWas {
			last = marks[len(marks)-1]
		}
		none(tinyBegin, int(last))
	}
	if len(text) == 0 {
		none(0, tinyBegin)
		none(tinyBegin+50+1, tinySize)
	}
	normalize := func() {
		var sum float64
		for _, l := range logits {
			sum += math.Exp(l)
		}
		for i := range logits {
			logits[i] -= math.Log(sum)
		}
	}
	normalize()
	var sum float64
	for _, l := range logits[tinyBegin:] {
		sum += math.Exp(l)
	}
	if math.Log(sum) > slices.Max(logits[:tinyBegin]) {
		none(0, tinyBegin)
	}
	normalize()
	return logits
}

func TestRulesMatchThePublishedOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Int32Range(0, tinySize-1), 0, 8).Draw(t, "text")
		text = slices.DeleteFunc(text, func(i int32) bool { return i >= tinyEOT && i < tinyBegin })
		logits := make([]float32, tinySize)
		want := make([]float64, tinySize)
		for i := range logits {
			logits[i] = float32(rapid.Float64Range(-9, 9).Draw(t, "logit"))
			want[i] = float64(logits[i])
		}
		want = published(want, text)
		tinyRules.forbid(logits, text)
		tinyRules.settle(logits)
		for i, w := range want {
			if math.IsNaN(w) { // no token is allowed, which no text reaches
				return
			}
			if math.IsInf(w, -1) {
				require.True(t, math.IsInf(float64(logits[i]), -1), "token %d after %v", i, text)
			} else {
				require.InDelta(t, w, logits[i], 1e-3, "token %d after %v", i, text)
			}
		}
	})
}

func TestTimeMarks(t *testing.T) {
	allowed := func(text ...int32) (list []int32) {
		logits := make([]float32, tinySize)
		tinyRules.forbid(logits, text)
		for i, l := range logits {
			if !math.IsInf(float64(l), -1) {
				list = append(list, int32(i))
			}
		}
		return list
	}
	seq := func(from, to int32) (list []int32) {
		for i := from; i <= to; i++ {
			list = append(list, i)
		}
		return list
	}
	const m, last = tinyBegin, tinySize - 1
	words := seq(0, tinyEOT)
	assert.Equal(t, seq(m, m+firstMark), allowed(), "a text begins with a mark of its first second")
	assert.Equal(t, words, allowed(m+3), "words follow the mark of a beginning, or the end")
	assert.Equal(t, append(words, seq(m+4, last)...), allowed(m+3, 1), "a passage has a length")
	assert.Equal(t, append([]int32{tinyEOT}, seq(m+9, last)...), allowed(m+3, 1, m+9), "another passage, or the end")
	assert.Equal(t, words, allowed(m+3, 1, m+9, m+9))
	assert.Equal(t, append(words, seq(m+12, last)...), allowed(m+3, 1, m+9, m+11, 2))
}

func TestUnmarkedModelsWriteNoMarks(t *testing.T) {
	logits := make([]float32, tinySize)
	plainRules.forbid(logits, nil)
	plainRules.settle(logits)
	for i, l := range logits {
		assert.Equal(t, i < tinyEOT, !math.IsInf(float64(l), -1), i)
	}
}

// The symbols are single tokens, or the first of several tokens if no other
// symbol begins with it.
func TestSymbolsAreSuppressed(t *testing.T) {
	tokens := []string{"#", " #", "(", " -", "-", " '", "'", "<<", "\u2669"[:2], "\u2669"[2:], " ", "a", "\"", "~"}
	greedy := func(text string) (list []int32) {
		for text != "" {
			best := -1
			for i, s := range tokens {
				if strings.HasPrefix(text, s) && (best < 0 || len(s) > len(tokens[best])) {
					best = i
				}
			}
			if best < 0 {
				return nil
			}
			list = append(list, int32(best))
			text = text[len(tokens[best]):]
		}
		return list
	}
	var found []string
	for _, t := range unspoken(greedy) {
		found = append(found, tokens[t])
	}
	assert.ElementsMatch(t, []string{"#", " #", "(", " -", " '", "<<", "\u2669"[:2], "\"", "~"}, found)
}

func TestTopSkipsForbiddenTokens(t *testing.T) {
	list := whispernet.Top([]float32{1, 5, forbidden, 5, 2}, 3, nil)
	assert.Equal(t, []whispernet.Candidate{{Token: 1, LogProb: 5}, {Token: 3, LogProb: 5}, {Token: 4, LogProb: 2}}, list)
}
