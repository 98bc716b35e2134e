package align_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// listener is a recognizer with a voice activity detector.
type listener struct {
	vad   *silero.Model
	model *onnx.Engine
}

// demonstration is the listener that the tests share.
var demonstration = sync.OnceValues(func() (l listener, err error) {
	set := demo.Models()
	v, err := set.Need(models.RoleVAD)
	if err != nil {
		return l, err
	}
	m, err := set.Need(models.RoleOptimized)
	if err != nil {
		return l, err
	}
	if l.vad, err = silero.Open(v, silero.Options{}); err != nil {
		return l, err
	}
	l.model, err = onnx.Open(m)
	return l, err
})

func openDemo(t testing.TB) listener {
	t.Helper()
	l, err := demonstration()
	require.NoError(t, err)
	return l
}

// open decodes a recording and finds the speech in it.
func (l listener) open(t testing.TB, path string) (*audio.PCM, []audio.Span) {
	t.Helper()
	pcm, err := audio.Open(context.Background(), audio.File(path), audio.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pcm.Close()) })
	speech, err := vad.Detect(context.Background(), l.vad, pcm, vad.DefaultOptions())
	require.NoError(t, err)
	return pcm, speech
}

func timed(words []align.Word) (out []bench.TimedText) {
	for _, w := range words {
		if !w.Missing {
			out = append(out, bench.TimedText{Start: w.Start, End: w.End, Text: w.Text})
		}
	}
	return out
}

// wordSet returns recordings whose word times were reported by their
// synthesizers (tools/wordset). OTOGRAPH_WORD_SET selects another set.
func wordSet(t *testing.T) []bench.Item {
	manifest := filepath.Join("testdata", "manifest.jsonl")
	if other := os.Getenv("OTOGRAPH_WORD_SET"); other != "" {
		manifest = other
	}
	items, err := bench.Load(manifest)
	require.NoError(t, err)
	return items
}

// TestWordTimesOfExactRecordings aligns the spoken texts.
func TestWordTimesOfExactRecordings(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	items := wordSet(t)
	l := openDemo(t)
	var sum bench.TimeErrors
	for _, item := range items {
		pcm, speech := l.open(t, item.Path)
		a, err := align.Words(context.Background(), l.model, pcm, speech, align.Split(*item.Text), align.Options{Language: item.Language})
		require.NoError(t, err)
		errors, ok := bench.ScoreWordTimes(item.Language, item.Words, timed(a.Words))
		require.True(t, ok)
		sum.Add(errors)
		assert.Greater(t, a.Score, 0.8, item.Name)
		for i := 1; i < len(a.Words); i++ {
			assert.LessOrEqual(t, a.Words[i-1].End, a.Words[i].Start+1e-9, "%s, %d", item.Name, i)
		}
	}
	t.Logf("%d words, starts %.1f ms off on the mean, %.1f %% within 50 ms, %.1f %% within 100 ms; %.1f %% matched",
		len(sum.Starts), 1000*sum.MeanStart(), 100*sum.Within(0.05), 100*sum.Within(0.1), 100*sum.Matched())
	assert.LessOrEqual(t, sum.MeanStart(), 0.035)
	assert.GreaterOrEqual(t, sum.Within(0.05), 0.85)
	assert.GreaterOrEqual(t, sum.Matched(), 0.97)
}

// TestDifferingTexts aligns texts that differ from the spoken ones or lack parts of
// them.
func TestDifferingTexts(t *testing.T) {
	items, err := bench.Load(filepath.Join("testdata", "manifest.jsonl"))
	require.NoError(t, err)
	l := openDemo(t)
	item := items[0]
	pcm, speech := l.open(t, item.Path)
	lay := func(text string) *align.Alignment {
		a, err := align.Words(context.Background(), l.model, pcm, speech, align.Split(text), align.Options{Language: item.Language})
		require.NoError(t, err)
		return a
	}
	words := strings.Fields(*item.Text)
	right := lay(*item.Text)
	require.Len(t, right.Words, len(words))

	digits := slices.Clone(words)
	for i := 2; i < len(digits); i += 5 {
		digits[i] = "1984"
	}
	var sum bench.TimeErrors
	errors, _ := bench.ScoreWordTimes(item.Language, item.Words, timed(lay(strings.Join(digits, " ")).Words))
	sum.Add(errors)
	assert.LessOrEqual(t, sum.MeanStart(), 0.045, "words next to numbers")

	wrong := lay("Fish cannot wear purple umbrellas because hedgehogs juggle quietly under Budapest bridges")
	assert.Less(t, wrong.Score, 0.3, "another text")

	more := lay(strings.Join(words[:3], " ") + " umbrella hedgehog " + strings.Join(words[3:], " "))
	assert.True(t, more.Words[3].Missing)
	assert.True(t, more.Words[4].Missing)
	assert.InDelta(t, right.Words[5].Start, more.Words[7].Start, 0.03)

	less := lay(strings.Join(words[:len(words)-3], " "))
	require.NotEmpty(t, less.Extra, "the last words are not in the text")
	assert.Greater(t, less.Extra[len(less.Extra)-1].End, right.Words[len(words)-3].Start)
	assert.Less(t, less.Score, right.Score)

	nothing := lay("")
	assert.Empty(t, nothing.Words)
	assert.Zero(t, nothing.Score)
}

// TestNumbersInDigits aligns texts in which every fifth word, each in turn, is
// written in digits: the numbers must get the times of the spoken words, and
// the other words must keep theirs.
func TestNumbersInDigits(t *testing.T) {
	items := wordSet(t)
	l := openDemo(t)
	var within, beside bench.TimeErrors
	for _, item := range items {
		pcm, speech := l.open(t, item.Path)
		words := align.Split(*item.Text)
		for off := range 5 {
			written := slices.Clone(words)
			for i := off; i < len(words); i += 5 {
				written[i] = "1984"
			}
			a, err := align.Words(context.Background(), l.model, pcm, speech, written, align.Options{Language: item.Language})
			require.NoError(t, err)
			require.Len(t, a.Words, len(words))
			errors, ok := bench.ScoreWordTimes(item.Language, item.Words, timed(a.Words))
			require.True(t, ok)
			beside.Add(errors)
			for i := range a.Words {
				assert.False(t, a.Words[i].Missing, "%s: %s", item.Name, words[i])
				assert.Equal(t, i%5 == off, a.Words[i].Wild)
				a.Words[i].Text = words[i]
			}
			errors, ok = bench.ScoreWordTimes(item.Language, item.Words, timed(a.Words))
			require.True(t, ok)
			within.Add(errors)
		}
	}
	t.Logf("%d words, %.1f ms off on the mean; %.1f ms with those written in digits", len(beside.Starts), 1000*beside.MeanStart(), 1000*within.MeanStart())
	assert.LessOrEqual(t, within.MeanStart(), 0.035)
	assert.LessOrEqual(t, beside.MeanStart(), 0.035)
	assert.Greater(t, len(within.Starts), len(beside.Starts))
}

// TestNeighboringNumbers aligns a text with three numbers in a row, which share
// the time of the words that are spoken there.
func TestNeighboringNumbers(t *testing.T) {
	item := wordSet(t)[0]
	l := openDemo(t)
	pcm, speech := l.open(t, item.Path)
	words := align.Split(*item.Text)
	written := slices.Clone(words)
	written[2], written[3], written[4] = "5", "1984", "7"
	a, err := align.Words(context.Background(), l.model, pcm, speech, written, align.Options{Language: item.Language})
	require.NoError(t, err)
	for i := 2; i < 5; i++ {
		assert.True(t, a.Words[i].Wild)
		assert.Greater(t, a.Words[i].End-a.Words[i].Start, 0.1)
		assert.GreaterOrEqual(t, a.Words[i].Start, a.Words[i-1].End)
	}
	assert.InDelta(t, item.Words[2].Start, a.Words[2].Start, 0.1)
	assert.InDelta(t, item.Words[5].Start, a.Words[4].End, 0.1)
}

// TestWrongTexts aligns each recording with the texts of recordings in other
// languages and checks that the score is low.
func TestWrongTexts(t *testing.T) {
	items := wordSet(t)
	l := openDemo(t)
	for i, item := range items {
		pcm, speech := l.open(t, item.Path)
		for k := 1; k < len(items); k++ { // the next recording in another language
			other := items[(i+k)%len(items)]
			if other.Language == item.Language {
				continue
			}
			a, err := align.Words(context.Background(), l.model, pcm, speech, align.Split(*other.Text), align.Options{Language: item.Language})
			require.NoError(t, err)
			assert.Less(t, a.Score, 0.3, "the text of %s in %s", other.Name, item.Name)
			break
		}
	}
}
