package decode

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// timed returns words of 0.3 s each; "/" is a pause of one second.
func timed(text string) []Word {
	var list []Word
	at := 0.0
	for _, w := range strings.Fields(text) {
		if w == "/" {
			at++
			continue
		}
		list = append(list, Word{Word: asr.Word{Text: " " + w, Start: at, End: at + 0.3, Probability: 0.5, Tokens: 2}, LogProb: -1})
		at += 0.3
	}
	return list
}

func TestSentences(t *testing.T) {
	for in, want := range map[string][]string{
		"Good morning. How are you? Fine!":          {"Good morning.", "How are you?", "Fine!"},
		"I am / tired. Yes.":                        {"I am", "tired.", "Yes."},
		"Ask Dr. Smith or J. Jones. Now.":           {"Ask Dr. Smith or J. Jones.", "Now."},
		"It costs 3.50 euros. Fine.":                {"It costs 3.50 euros.", "Fine."},
		"Wait... what is it? \"Nothing.\" He left.": {"Wait... what is it?", "\"Nothing.\"", "He left."},
		"你好。 再见！":                                   {"你好。", "再见！"},
		"no end at all":                             {"no end at all"},
		"¿Qué tal? ¡Bien! Adiós.":                   {"¿Qué tal?", "¡Bien!", "Adiós."},
		"":                                          nil,
	} {
		var got []string
		for _, s := range Sentences(timed(in), true) {
			got = append(got, s.Text)
		}
		assert.Equal(t, want, got, in)
	}
}

func TestSentenceEndsBetweenTexts(t *testing.T) {
	for _, two := range [][2]string{{"I saw Dr.", "Smith yesterday."}, {"That is J.", "Smith."}, {"We met (Mr.", "Jones came)."}, {"And then", "he left."}} {
		assert.False(t, EndsSentence(two[0], two[1]), two)
	}
	for _, two := range [][2]string{{"He is a doctor.", "She is not."}, {"Really?", "Yes."}, {"He left.\"", "I stayed."}} {
		assert.True(t, EndsSentence(two[0], two[1]), two)
	}
}

func TestSentencesHaveOneLanguage(t *testing.T) {
	words := timed("Good morning and auf Wiedersehen.")
	for i := range words {
		words[i].Language = "en"
		if i > 2 {
			words[i].Language = "de"
		}
	}
	var got []string
	for _, s := range Sentences(words, true) {
		got = append(got, s.Language+" "+s.Text)
	}
	assert.Equal(t, []string{"en Good morning and", "de auf Wiedersehen."}, got)
}

func TestSentenceFields(t *testing.T) {
	words := timed("Good morning. / Bye.")
	words[0].NoSpeechProb = 0.2
	s := Sentences(words, true)
	require.Len(t, s, 2)
	assert.Equal(t, asr.Segment{
		Start: 0, End: 0.6, Text: "Good morning.", AvgLogProb: -0.5, NoSpeechProb: 0.1,
		Words: []asr.Word{{Text: "Good", Start: 0, End: 0.3, Probability: 0.5, Tokens: 2}, {Text: "morning.", Start: 0.3, End: 0.6, Probability: 0.5, Tokens: 2}},
	}, s[0])
	assert.InDelta(t, 1.6, s[1].Start, 1e-9)
	assert.Nil(t, Sentences(words, false)[0].Words)
}

func TestEndlessSentencesAreCut(t *testing.T) {
	words := timed(strings.Repeat("word ", 400)) // 120 s
	words[150].Start += 0.2                      // the longest pause in its half
	for _, s := range Sentences(words, true) {
		assert.LessOrEqual(t, s.End-s.Start, longest)
	}
	var n int
	for _, s := range Sentences(words, true) {
		n += len(s.Words)
	}
	assert.Equal(t, 400, n, "nothing is lost")
}

// TestSettlerEmitsTheFinalSentences checks that, for any portions, the emitted
// sentences are the first ones of all words.
func TestSettlerEmitsTheFinalSentences(t *testing.T) {
	random := rand.New(rand.NewPCG(34, 1))
	for range 300 {
		var words []Word
		at := 0.0
		for range 1 + random.IntN(60) {
			at += []float64{0, 0.05, 0.4, 1.2}[random.IntN(4)]
			text := []string{" word", " End.", " Mr.", " and", " so?"}[random.IntN(5)]
			words = append(words, Word{Word: asr.Word{Text: text, Start: at, End: at + 0.2*random.Float64(), Tokens: 1}, LogProb: -1})
			at += 0.2
		}
		var speech []audio.Span
		for from := 0.0; from < at+1; from += 3 {
			speech = append(speech, audio.Span{Start: int(from * audio.SampleRate), End: int((from + 2.5) * audio.SampleRate)})
		}
		var given []asr.Segment
		s := Settler{Speech: speech, Give: func(whole []asr.Segment) { given = append(given, whole...) }}
		for rest := slices.Clone(words); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			s.Add(slices.Clone(rest[:n]))
			rest = rest[n:]
		}
		Settle(words, speech)
		all := Sentences(words, false)
		require.LessOrEqual(t, len(given), len(all))
		require.Equal(t, all[:len(given)], append([]asr.Segment{}, given...))
		require.GreaterOrEqual(t, len(given), len(all)-1, "only the last sentence may still change")
	}
}
