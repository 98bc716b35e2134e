package decode

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
)

func TestSkippedSpeech(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		from, to float64
		speech   []float64
		want     []Skip
	}{
		"jumped over in the middle": {
			"I am sorry, I think the contract is good.", 41.5, 47.5,
			[]float64{41.5, 42.5, 42.66, 45.0, 45.7, 47.5},
			[]Skip{{3, 42.66, 45.0}},
		},
		"the last": {
			"I am sorry,", 41.5, 44.8,
			[]float64{41.5, 42.5, 42.66, 44.8},
			[]Skip{{3, 42.66, 44.8}},
		},
		"the first": {
			"I think the contract is good.", 41.5, 47.5,
			[]float64{41.5, 43.9, 45.7, 47.5},
			[]Skip{{0, 41.5, 43.9}},
		},
		"two": {
			"Good morning, see you on Monday.", 0, 12,
			[]float64{0, 0.8, 1.2, 3.4, 4, 6.5, 7, 8.4},
			[]Skip{{2, 1.2, 3.4}, {2, 4, 6.5}},
		},
		"all said":                    {"I am sorry, what do you think? I agree.", 0, 4, []float64{0, 0.9, 1.1, 2.3, 2.6, 3.2}, nil},
		"all said slowly":             {"Four. Seven. Nine. Two. Eight.", 0, 6, []float64{0, 0.7, 1.2, 2, 2.4, 3.1, 3.6, 4.2, 4.6, 5.3}, nil},
		"a single stretch":            {"Yes.", 0, 5, []float64{0, 5}, nil},
		"a silence too short":         {"Yes.", 0, 5, []float64{0, 0.5, 0.55, 5}, nil},
		"less than a second":          {"I am sorry,", 0, 2, []float64{0, 1.06, 1.2, 2}, nil},
		"only the speech in between":  {"I am sorry,", 0, 1.1, []float64{0, 1.06, 1.2, 3.4}, nil},
		"no words":                    {"", 0, 5, []float64{0, 2, 3, 5}, nil},
		"no speech":                   {"Yes.", 0, 5, nil, nil},
		"Chinese":                     {"你 好， 我 是 学 生。", 0, 6, []float64{0, 0.6, 1, 3.4, 3.9, 4.9}, []Skip{{2, 1, 3.4}}},
		"more stretches than words":   {"Good morning.", 0, 9, []float64{0, 1, 2, 3.5, 4, 4.3, 5, 6.5}, []Skip{{2, 2, 3.5}, {2, 5, 6.5}}},
		"a word longer than a second": {"No. Internationalization.", 0, 4, []float64{0, 0.4, 1, 3}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var words []Word
			for _, w := range strings.Fields(c.text) {
				words = append(words, Word{Word: asr.Word{Text: w}})
			}
			assert.Equal(t, c.want, Skipped(words, c.from, c.to, spans(c.speech...)))
		})
	}
}

func TestWordsFillTheirSeconds(t *testing.T) {
	words := []Word{{Word: asr.Word{Text: "Thank"}}, {Word: asr.Word{Text: "you."}}}
	assert.True(t, Fills(words, 0.7))
	assert.False(t, Fills(words, 2.5))
	assert.False(t, Fills(nil, 0.1))
}
