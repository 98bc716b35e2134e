package wordtimes

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
)

const second = audio.SampleRate

// recording is synthetic speech with the synthesizer's word times.
type recording struct {
	samples []float32
	words   []string
	starts  []float64
	end     float64
}

func openRecording(t *testing.T) *recording {
	t.Helper()
	folder := filepath.Join("..", "..", "..", "align", "testdata")
	data, err := os.ReadFile(filepath.Join(folder, "manifest.jsonl"))
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(data), "\n")
	var item struct {
		File  string
		Words []struct {
			Word       string
			Start, End float64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(line), &item))
	pcm, err := audio.Open(t.Context(), audio.File(filepath.Join(folder, item.File)), audio.Options{})
	require.NoError(t, err)
	defer func() { _ = pcm.Close() }()
	r := &recording{samples: append([]float32(nil), pcm.Samples(0, pcm.Len())...)}
	for _, w := range item.Words {
		r.words = append(r.words, w.Word)
		r.starts = append(r.starts, w.Start)
		r.end = w.End
	}
	return r
}

// speech returns the span from the first word to the last.
func (r *recording) speech() []audio.Span {
	return []audio.Span{{Start: int(r.starts[0] * second), End: min(int(r.end*second), len(r.samples))}}
}

// input returns a window of the recording with a token for each word and no
// scores.
func (r *recording) input() Input {
	in := Input{Prefix: 2, Samples: r.samples, Speech: r.speech()}
	for i, w := range r.words {
		in.Words = append(in.Words, Word{" " + w, i, i})
	}
	return in
}

// head returns the scores of a head that, on reading a word, attends to the
// word behind places earlier, from early seconds before its start, with noise.
func (r *recording) head(random *rand.Rand, early float64, behind int) [][]float32 {
	begins := append(append([]float64(nil), r.starts...), r.end, r.end+0.3)
	rows := randomScores(random, 1, 2+len(r.words)+1, 1500)[0]
	for i, row := range rows {
		word := max(i-1-behind, 0) // the row before a token's row attends to the token
		if word >= len(begins)-1 {
			continue // the row of EOT
		}
		for j := int((begins[word] - early) * 50); j < int((begins[word+1]-early)*50); j++ {
			row[j] += 8
		}
	}
	return rows
}

func TestTimesOfSpeech(t *testing.T) {
	r := openRecording(t)
	in := r.input()
	random := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		in.Scores = append(in.Scores, r.head(random, 0.06, 0))
	}
	times := Times(in)
	require.Len(t, times, len(r.words))
	var off float64
	for i, w := range times {
		off += math.Abs(w.Start-r.starts[i]) / float64(len(times))
	}
	assert.Less(t, off, 0.04)
	again := r.input()
	random = rand.New(rand.NewPCG(1, 2))
	for range 3 {
		again.Scores = append(again.Scores, r.head(random, 0.06, 0))
	}
	assert.Equal(t, times, Times(again), "the same input gives the same times")
}

// TestLastWordStaysWithItsSentence: attention places the last word of a
// sentence after a pause, where the next sentence begins immediately. The word
// moves before the pause, unless punctuation separates it from the word before
// it.
func TestLastWordStaysWithItsSentence(t *testing.T) {
	const last = 5 // "the", before "restaurant"
	for before, apart := range map[string]bool{"": false, ",": true} {
		r := openRecording(t)
		at := int(r.starts[last+1] * second)
		r.samples = slices.Concat(r.samples[:at], make([]float32, second), r.samples[at:])
		r.end++
		for i := range r.starts[last+1:] {
			r.starts[last+1+i]++
		}
		r.words[last-1] += before
		r.words[last], r.words[last+1] = "the.", "Restaurant"
		in := r.input()
		in.Speech = []audio.Span{{Start: in.Speech[0].Start, End: at}, {Start: at + second, End: in.Speech[0].End}}
		r.starts[last] = r.starts[last+1]
		r.starts[last+1] += 0.2
		in.Scores = [][][]float32{r.head(rand.New(rand.NewPCG(1, 2)), 0.06, 0)}
		times := Times(in)
		require.Len(t, times, len(r.words))
		assert.Equal(t, apart, times[last].Start > float64(at)/second, "%q %v", before, times[last])
		assert.GreaterOrEqual(t, times[last+1].Start, float64(at)/second+1)
	}
}

// TestChoosePrefersHeadsThatJumpToTheWord: heads that are two words behind,
// look everywhere, or always look at the same place are not chosen.
func TestChoosePrefersHeadsThatJumpToTheWord(t *testing.T) {
	r := openRecording(t)
	random := rand.New(rand.NewPCG(3, 4))
	noise := func() [][]float32 { return randomScores(random, 1, 2+len(r.words)+1, 1500)[0] }
	fixed := noise()
	for _, row := range fixed {
		row[77] = 12
	}
	layers := [][][][]float32{
		{r.head(random, 0.06, 0)}, // in the first half of the layers: not tried
		{noise(), r.head(random, 0.06, 2), r.head(random, 0.1, 0), fixed, r.head(random, 0.06, 0)},
	}
	var asked []int
	heads, err := Choose(t.Context(), r.input(), 2, func(layer int) ([][][]float32, error) {
		asked = append(asked, layer)
		return layers[layer], nil
	})
	require.NoError(t, err)
	assert.Equal(t, []int{1}, asked)
	assert.ElementsMatch(t, [][2]int{{1, 2}, {1, 4}}, heads)

	_, err = Choose(t.Context(), r.input(), 2, func(int) ([][][]float32, error) { return nil, os.ErrClosed })
	require.ErrorIs(t, err, os.ErrClosed)
	heads, err = Choose(t.Context(), Input{Samples: r.samples, Speech: r.speech()}, 2, nil)
	require.NoError(t, err)
	assert.Empty(t, heads, "no words")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrProcessDone)
	_, err = Choose(ctx, r.input(), 2, func(layer int) ([][][]float32, error) { return layers[layer], nil })
	require.ErrorIs(t, err, os.ErrProcessDone)
}

// bursts returns noise in the spans, and near silence between them.
func bursts(random *rand.Rand, samples int, speech []audio.Span) []float32 {
	x := make([]float32, samples)
	for i := range x {
		x[i] = float32(random.NormFloat64()) * 1e-4
	}
	for _, s := range speech {
		for i := s.Start; i < min(s.End, samples); i++ {
			x[i] *= 1000
		}
	}
	return x
}

// TestTimesKeepTheRules: for any attention, words keep their order, last 20 ms,
// and none spans a pause.
func TestTimesKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var speech []audio.Span
		at, room := 0, 0
		for range rapid.IntRange(1, 5).Draw(t, "spans") {
			at += rapid.IntRange(second/8, second).Draw(t, "pause")
			end := at + rapid.IntRange(second/4, 2*second).Draw(t, "speech")
			speech = append(speech, audio.Span{Start: at, End: end})
			room += end - at
			at = end
		}
		in := Input{Prefix: 1 + rapid.IntRange(0, 3).Draw(t, "prefix"), Speech: speech}
		in.Samples = bursts(random, at+rapid.IntRange(0, second).Draw(t, "tail"), speech)
		n := rapid.IntRange(1, 40).Draw(t, "words")
		tokens := 0
		for range n {
			tokens += rapid.IntRange(0, 1).Draw(t, "comma")
			last := tokens + rapid.IntRange(0, 2).Draw(t, "tokens")
			in.Words = append(in.Words, Word{" word", tokens, last})
			tokens = last + 1
		}
		in.Scores = randomScores(random, 2, in.Prefix+tokens+1, 1500)
		times := Times(in)
		if times == nil {
			require.Less(t, room, (n*2+2*len(speech))*frame, "there is room")
			return
		}
		require.Len(t, times, n)
		before := 0.0
		for i, w := range times {
			require.GreaterOrEqual(t, w.Start, before-1e-9, "word %d", i)
			require.GreaterOrEqual(t, w.End-w.Start, 0.02-1e-9, "word %d", i)
			inside := false
			for _, s := range speech {
				a, b := s.Seconds()
				inside = inside || w.Start >= a-1e-9 && w.End <= b+1e-9
			}
			require.True(t, inside, "word %d: %v in %v", i, w, speech)
			before = w.End
		}
	})
}

// TestQuietPause: a pause that the voice detector missed ends a word.
func TestQuietPause(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	heard := []audio.Span{{Start: second, End: 2 * second}, {Start: 5 * second / 2, End: 4 * second}}
	in := Input{Prefix: 1, Speech: []audio.Span{{Start: second, End: 4 * second}}, Words: []Word{{" one", 0, 0}, {" two", 1, 1}}}
	in.Samples = bursts(random, 5*second, heard)
	in.Scores = randomScores(random, 1, 4, 1500)
	for row, at := range [][2]int{{50, 100}, {125, 200}, {200, 250}} { // positions of 20 ms
		for j := at[0]; j < at[1]; j++ {
			in.Scores[0][row][j] += 12
		}
	}
	times := Times(in)
	require.Len(t, times, 2)
	assert.InDelta(t, 2, times[0].End, 0.011, "the last word of a phrase ends before the pause")
	assert.InDelta(t, 2.5, times[1].Start, 0.011, "the first word of the next phrase begins after it")
}

// TestAttentionAheadOfAPause: a word whose attention begins before the pause in
// front of the word starts after the pause, where sound would otherwise belong
// to no word.
func TestAttentionAheadOfAPause(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	in := Input{Prefix: 1, Speech: []audio.Span{{Start: second, End: 2 * second}, {Start: 5 * second / 2, End: 7 * second / 2}}}
	in.Samples = bursts(random, 4*second, in.Speech)
	in.Words = []Word{{" the", 0, 0}, {" address", 1, 1}, {" a", 2, 2}, {" very", 3, 3}, {" vicious", 4, 4}}
	in.Scores = randomScores(random, 1, 7, 1500)
	for row, at := range [][2]int{{50, 62}, {62, 93}, {93, 132}, {132, 148}, {148, 175}, {175, 200}} { // positions of 20 ms
		for j := at[0]; j < at[1]; j++ {
			in.Scores[0][row][j] += 12
		}
	}
	times := Times(in)
	require.Len(t, times, 5)
	assert.InDelta(t, 2, times[1].End, 0.011, "the word before lasts until the pause")
	assert.InDelta(t, 2.5, times[2].Start, 0.011, "the word begins after the pause")
}

// TestCountLetters: a digit and a character of a script without spaces last as
// long as several letters.
func TestCountLetters(t *testing.T) {
	for text, want := range map[string]float64{" a": 2, " don't": 4, " 12.5": 12, "你": 4, " l'été,": 4, "%": 2} {
		assert.InDelta(t, want, countLetters(text), 0, text)
	}
}

func TestSliversAtWindowEndsAreDropped(t *testing.T) {
	span := func(from, to float64) audio.Span { return audio.Span{Start: int(from * second), End: int(to * second)} }
	whole := []audio.Span{span(0, 0.05), span(1, 2), span(2.9, 3)}
	assert.Equal(t, whole[1:2], withoutSlivers(whole, 3*second), "cut by the window's ends")
	assert.Equal(t, whole[1:], withoutSlivers(whole, 4*second), "the last one is whole")
	assert.Equal(t, whole[2:], withoutSlivers(whole[2:], 3*second), "there is no other speech")
}

func BenchmarkSharpen(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	in := Input{Prefix: 1, Speech: []audio.Span{{Start: 0, End: 29 * second}}}
	in.Samples = bursts(random, 30*second, in.Speech)
	begins := []int{}
	for i := range 100 {
		in.Words = append(in.Words, Word{" word", i, i})
		begins = append(begins, i*14)
	}
	begins = append(begins, 1450)
	for b.Loop() {
		s := newSharpener(in)
		s.place(begins)
		s.score()
		s.times(begins)
	}
}
