package whisper

import (
	"context"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// far puts the same speech, in seconds, into each of n windows of 30 s.
func far(n int, seconds ...float64) (*audio.PCM, []audio.Span) {
	var speech []audio.Span
	for i := range n {
		for _, s := range spans(seconds...) {
			at := 30 * i * second
			speech = append(speech, audio.Span{Start: at + s.Start, End: at + s.End})
		}
	}
	return audio.FromSamples(make([]float32, 30*n*second)), speech
}

func TestRepairPacksStretchesTogether(t *testing.T) {
	// The model's text of 3 s fills the first half of each window's speech.
	e := openWindows(t, buildModel(testHeader, say(0.0, " Alpha", " beta", " gamma", " delta", ".", 4.5)), 6, Options{})
	pcm, speech := far(8, 0.2, 1.8, 2.2, 4.4)
	o := greedy()
	var want *asr.Transcript
	for _, parallel := range []int{1, 3} {
		o.Parallel = parallel
		tr, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		if want == nil {
			want = tr
		}
		assert.Equal(t, want, tr, "the repair depends on no order")
	}
	s := want.Stats
	assert.Equal(t, 8, s.Windows)
	assert.Equal(t, 12, s.EncoderPasses, "three during the first pass, and one with two stretches of 2.2 s")
	assert.Equal(t, 5, s.Skipped)
	assert.Equal(t, 3, s.Untried)
}

// TestRepeatedWordsInsideAClause: words of a stretch inside a clause with which
// the clause continues are the same words; between clauses, people say things
// again.
func TestRepeatedWordsInsideAClause(t *testing.T) {
	words := func(text string, at, length float64) (list []decode.Word) {
		for _, w := range strings.Fields(text) {
			list = append(list, decode.Word{Word: asr.Word{Text: " " + w, Start: at, End: at + length}})
			at += length
		}
		return list
	}
	for _, c := range []struct {
		before, stretch, after, left string
		start                        float64 // of the text after the stretch
	}{
		{"is coming on, a", "A light.", "light on the dashboard", "", 2.3},
		{"Give", "Ah, give me a second.", "Me a second. Let", "Ah, give", 5},
		{"we offer with", "the red", "car", "the red", 5},
		{"the number is eight,", "eight three", "three four", "eight three", 5},
		{"of effort and stuff", "duplication of effort and stuff.", "", "duplication of effort and stuff.", 5},
		{"", "Yes", "Yes", "Yes", 5},
	} {
		length := 0.3
		if c.start < 5 {
			length = 0.1
		}
		after := words(c.after, 5, length)
		got := unwritten(words(c.stretch, 2, 0.3), words(c.before, 0, 0.3), after)
		assert.Equal(t, words(c.left, 2, 0.3), slices.Concat(got), c.stretch)
		if len(after) > 0 {
			assert.InDelta(t, c.start, after[0].Start, 1e-9, c.stretch)
		}
	}
}

func TestRisingTemperaturesShareOnePass(t *testing.T) {
	var loop []any
	for range 12 {
		loop = append(loop, " Alpha")
	}
	e := open(t, buildModel(testHeader, say(append([]any{0.0}, loop...)...)), Options{})
	tr, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, 4*second)), spans(0, 2), greedy())
	require.NoError(t, err)
	assert.Equal(t, 5, tr.Stats.Fallbacks, "0.2, 0.4 … 1.0")
	assert.Equal(t, 2, tr.Stats.EncoderPasses)
}

// For any text and any stretches of speech, repair adds at most a
// half more passes.
func TestRepairKeepsToItsBudget(t *testing.T) {
	var engines []*Engine
	for _, plan := range [][]int{
		say(0.0, " Alpha", " beta", ".", 1.0),
		say(0.0, " Alpha", " beta", " gamma", " delta", ".", 7.0),
		say(1.0, " Alpha", 2.0, 2.0, " beta", " gamma", ".", 4.0),
		say(0.0, " Alpha", " Alpha", " Alpha", " Alpha", " Alpha", " Alpha", " Alpha", " Alpha", " Alpha", " Alpha", " Alpha", " Alpha", 8.0),
		say(0.0),
	} {
		for _, sure := range []float32{0.2, 8} {
			engines = append(engines, openWindows(t, buildModelAs(testHeader, plan, sure), 8, Options{}))
		}
	}
	recordings := rapid.Custom(func(t *rapid.T) (speech []audio.Span) {
		from := 0
		for range rapid.IntRange(1, 16).Draw(t, "stretches") {
			from += rapid.IntRange(second/10, 6*second).Draw(t, "pause")
			end := from + rapid.IntRange(second/4, 5*second).Draw(t, "speech")
			speech = append(speech, audio.Span{Start: from, End: end})
			from = end
		}
		return speech
	})
	var sum asr.Stats
	for seed := range 24 {
		speech := recordings.Example(seed)
		pcm := audio.FromSamples(make([]float32, speech[len(speech)-1].End+second))
		tr, err := engines[seed%len(engines)].Transcribe(context.Background(), pcm, speech, greedy())
		require.NoError(t, err)
		s := tr.Stats
		sum.Add(s)
		assert.LessOrEqual(t, s.EncoderPasses, s.Windows+2*((s.Windows+3)/4), "%+v", s)
		last := 0.0
		for _, seg := range tr.Segments {
			assert.GreaterOrEqual(t, seg.Start, last-1e-9)
			assert.Greater(t, seg.End, seg.Start)
			last = seg.End
		}
	}
	t.Logf("%+v", sum)
	for _, taken := range []int{sum.Fallbacks, sum.Continued, sum.Untried, sum.Loops} {
		assert.Positive(t, taken, "every path is taken: %+v", sum)
	}
}

// A sentence that the recording repeats exactly is written as often as it is
// spoken, although the model writes it once for the window, and is reported so
// before the end.
func TestRepeatedSound(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	sentence := make([]float32, 2*second)
	for i := second / 8; i < len(sentence)-second/8; i++ {
		sentence[i] = float32(r.NormFloat64()) / 10
	}
	e := openWindows(t, buildModel(testHeader, say(0.0, " Alpha", " beta", " gamma", ".", 2.0)), 6, Options{})
	pcm := audio.FromSamples(slices.Repeat(sentence, 5))
	o := greedy()
	var settled []string
	o.Settled = func(list []asr.Segment) {
		for _, s := range list {
			settled = append(settled, s.Text)
		}
	}
	tr, err := e.Transcribe(context.Background(), pcm, spans(0.1, 9.9), o)
	require.NoError(t, err)
	var texts []string
	for i, s := range tr.Segments {
		texts = append(texts, s.Text)
		assert.InDelta(t, 0.1+2*float64(i), s.Start, 0.1)
	}
	assert.Equal(t, slices.Repeat([]string{"Alpha beta gamma."}, 5), texts)
	assert.Equal(t, texts[:len(settled)], settled)
	assert.NotEmpty(t, settled)
}
