package onnx

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small is a model whose probabilities can be computed by hand.
const small = `made by hand

\data\
ngram 1=7
ngram 2=4
ngram 3=2

\1-grams:
-1.0	</s>
-99	<s>	-0.5
-2.0	<unk>
-0.5	The	-0.25
-0.6	cat	-0.125
-0.7	sat	-0.0625
-0.9	明

\2-grams:
-0.1	<s> the	-0.2
-0.2	the cat	-0.3
-0.3	cat sat
-0.4	sat </s>

\3-grams:
-0.05	<s> the cat
-0.15	the cat sat

\end\
`

func parsed(t testing.TB, text string) *wordModel {
	t.Helper()
	m, err := parseARPA("lm.arpa", []byte(text))
	require.NoError(t, err)
	return m
}

// log10 returns the model's log10 probability of the last word after the
// others.
func log10(t testing.TB, m *wordModel, words ...string) float64 {
	t.Helper()
	context := int32(0)
	if words[0] == sentenceStart {
		context, words = m.start, words[1:]
	}
	var logProb float64
	for _, w := range words {
		id := int32(-1)
		for i, known := range m.words {
			if known == w {
				id = int32(i)
			}
		}
		logProb, context = m.next(context, id)
	}
	return logProb / math.Ln10
}

func TestProbabilitiesBackOff(t *testing.T) {
	m := parsed(t, small)
	for words, want := range map[string]float64{
		"the":                 -0.5,
		"<s> the":             -0.1,
		"<s> the cat":         -0.05,
		"the cat":             -0.2,
		"<s> the cat sat":     -0.15,
		"<s> cat":             -0.5 - 0.6,
		"<s> the sat":         -0.2 - 0.25 - 0.7,  // neither "<s> the sat" nor "the sat"
		"<s> the cat </s>":    -0.3 - 0.125 - 1.0, // "the cat </s>" is missing, and "cat </s>"
		"the cat sat </s>":    -0.4,               // "cat sat" has no back-off weight
		"<s> the cat dog":     -0.3 - 0.125 - 2.0, // a word that the model does not list
		"<s> the cat dog cat": -0.6,               // no n-gram begins with dog
		"cat sat cat":         -0.0625 - 0.6,      // "cat sat" is in no longer n-gram: "sat" is its context
		"<s> 明":               -0.5 - 0.9,
	} {
		assert.InDelta(t, want, log10(t, m, strings.Fields(words)...), 1e-6, words)
	}
}

func TestUnknownWordsWithoutAnEntry(t *testing.T) {
	m := parsed(t, "\\data\\\nngram 1=2\n\\1-grams:\n-1 a\n-3 b\n\\end\\\n")
	assert.InDelta(t, -3, log10(t, m, "z"), 1e-6, "with the probability of the least likely word")
	assert.Equal(t, int32(-1), m.end)
	assert.Zero(t, m.start)
}

func TestCaseIsFolded(t *testing.T) {
	m := parsed(t, "\\data\\\nngram 1=3\nngram 2=2\n\\1-grams:\n-1 US -0.5\n-2 us -0.1\n-3 go\n\\2-grams:\n-0.7 US go\n-0.2 us go\n\\end\\\n")
	assert.InDelta(t, -1, log10(t, m, "us"), 1e-6, "the likelier spelling counts")
	assert.InDelta(t, -0.2, log10(t, m, "us", "go"), 1e-6)
}

func TestErrorsNameTheLine(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(small, from, to, 1) }
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", `line 0: expected \data\, with which a language model in the ARPA format begins, found "the end of the file"`},
		"another file":        {"<blk> 0\na 1\n", `line 2: expected \data\`},
		"no counts":           {"\\data\\\n\\1-grams:\n", `line 2: expected ngram 1=COUNT, found "\\1-grams:"`},
		"a count left out":    {change("ngram 2=4\n", ""), `line 5: expected ngram 2=COUNT, with n-grams of at most 6 words, found "ngram 3=2"`},
		"a count of nothing":  {change("ngram 1=7", "ngram 1=x"), `line 4: expected ngram 1=COUNT, with at most`},
		"too many":            {change("ngram 1=7", "ngram 1=999999999999"), "at most 104857600 n-grams in all"},
		"too long":            {change("ngram 3=2\n", "ngram 3=2\nngram 4=0\nngram 5=0\nngram 6=0\nngram 7=0\n"), "n-grams of at most 6 words"},
		"fewer than said":     {change("-0.4	sat </s>\n", ""), `expected n-gram 4 of the 4 with 2 words, found "\\3-grams:"`},
		"more than said":      {change("-0.4	sat </s>\n", "-0.4	sat </s>\n-1 cat cat\n"), `expected \3-grams: after 11 shorter n-grams, found "-1 cat cat"`},
		"no number":           {change("-0.5	The", "x	The"), `not "x", found`},
		"not a number":        {change("-0.5	The	-0.25", "nan	The	-0.25"), `not "nan"`},
		"a chance above one":  {change("-0.5	The", "0.5	The"), `the log10 of a probability and of a back-off weight, not "0.5"`},
		"a huge weight":       {change("	-0.25", "	1e30"), `not "1e30"`},
		"words left out":      {change("-0.2	the cat	-0.3", "-0.2"), "expected a probability, 2 words and perhaps a back-off weight"},
		"a word not listed":   {change("the cat	-0.3", "the dog	-0.3"), `expected words of the 1-grams, not "dog"`},
		"a beginning missing": {change("-0.15	the cat sat", "-0.15	sat the cat"), `an n-gram whose beginning "sat the" is one of the shorter ones`},
		"no end":              {change("\\end\\", ""), `expected \end\, found "the end of the file"`},
		"a line without end":  {`\data\` + "\nngram 1=1\n\\1-grams:\n-1 " + strings.Repeat("a", 1<<17), "line 4: more than 65536 bytes long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseARPA("lm.arpa", []byte(c.text))
			assert.ErrorContains(t, err, "lm.arpa: no language model in the ARPA format: ")
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// FuzzParseARPA checks that parseARPA either refuses a file or returns a model in which
// every word can be looked up after every context.
func FuzzParseARPA(f *testing.F) {
	f.Add(small)
	f.Add("\\data\\\nngram 1=1\nngram 2=1\n\\1-grams:\n-1 a -1\n\\2-grams:\n-1 a a\n\\end\\")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseARPA("fuzz", []byte(text))
		if err != nil {
			return
		}
		// Large models are sampled.
		for context := int32(0); context < int32(len(m.word)); context += 1 + int32(len(m.word)/97) {
			for word := int32(-1); word < int32(len(m.words)); word += 1 + int32(len(m.words)/89) {
				logProb, next := m.next(context, word)
				require.False(t, math.IsNaN(logProb) || math.IsInf(logProb, 0))
				require.Less(t, next, int32(len(m.word)))
			}
		}
	})
}

// BenchmarkParseARPA reads a model of two lengths and reports the time per n-gram.
func BenchmarkParseARPA(b *testing.B) {
	var text strings.Builder
	const words = 300
	fmt.Fprintf(&text, "\\data\\\nngram 1=%d\nngram 2=%d\n\\1-grams:\n", words, words*words)
	for i := range words {
		fmt.Fprintf(&text, "-2.5\tw%d\t-0.3\n", i)
	}
	text.WriteString("\\2-grams:\n")
	for i := range words * words {
		fmt.Fprintf(&text, "-1.2\tw%d w%d\n", i/words, i%words)
	}
	text.WriteString("\\end\\\n")
	data := []byte(text.String())
	for b.Loop() {
		if _, err := parseARPA("lm.arpa", data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(words*words+words), "ns/n-gram")
}
