package align_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/vad"
)

// share is a number of hits and the number of attempts.
type share struct{ some, all int }

func (s *share) add(yes bool) {
	s.all++
	if yes {
		s.some++
	}
}

func (s share) percent() float64 { return 100 * float64(s.some) / float64(max(s.all, 1)) }

// thirds returns the parts of a recording's words to remove, each as its first
// and last word.
func thirds(words int) map[string][2]int {
	return map[string][2]int{"first": {0, words / 3}, "middle": {words / 3, words - words/3}, "last": {words - words/3, words}}
}

// TestTruncatedTexts aligns texts without a third of their words and checks
// that the speech outside of the text is reported and the other words are
// found.
func TestTruncatedTexts(t *testing.T) {
	l := openDemo(t)
	for _, part := range []string{"first", "middle", "last"} {
		var extra, found share
		var times bench.TimeErrors
		for _, item := range wordSet(t) {
			pcm, speech := l.open(t, item.Path)
			words := align.Split(*item.Text)
			if len(item.Words) != len(words) {
				continue // the synthesizer reported two words as one
			}
			gone := thirds(len(words))[part]
			kept := append(append([]string(nil), words[:gone[0]]...), words[gone[1]:]...)
			a, err := align.Words(context.Background(), l.model, pcm, speech, kept, align.Options{Language: item.Language})
			require.NoError(t, err)
			for _, w := range item.Words[gone[0]:gone[1]] {
				extra.add(covered(a.Extra, (w.Start+w.End)/2))
			}
			for _, w := range a.Words {
				found.add(!w.Missing)
			}
			rest := append(append([]bench.TimedText(nil), item.Words[:gone[0]]...), item.Words[gone[1]:]...)
			errors, ok := bench.ScoreWordTimes(item.Language, rest, timed(a.Words))
			require.True(t, ok)
			times.Add(errors)
		}
		t.Logf("without the %s third: %d of %d words that are not in the text reported (%.1f %%), %d of %d of the text found (%.1f %%), %.1f ms off on the mean, %.1f %% within 100 ms",
			part, extra.some, extra.all, extra.percent(), found.some, found.all, found.percent(), 1000*times.MeanStart(), 100*times.Within(0.1))
		require.NotZero(t, extra.all)
		assert.GreaterOrEqual(t, extra.percent(), 90.0, part)
		assert.GreaterOrEqual(t, found.percent(), 95.0, part)
	}
}

func covered(extra []align.Extra, time float64) bool {
	for _, e := range extra {
		if e.Start <= time && time <= e.End {
			return true
		}
	}
	return false
}

// TestTruncatedSound aligns texts with recordings from which a third of the
// sound is cut, and checks that the removed words are missing and the others
// are found.
func TestTruncatedSound(t *testing.T) {
	l := openDemo(t)
	for _, part := range []string{"first", "middle", "last"} {
		var missing, found share
		for _, item := range wordSet(t) {
			whole, _ := l.open(t, item.Path)
			words := align.Split(*item.Text)
			if len(item.Words) != len(words) {
				continue
			}
			gone := thirds(len(words))[part]
			from, to := int(item.Words[gone[0]].Start*audio.SampleRate), whole.Len()
			if gone[1] < len(words) {
				to = int(item.Words[gone[1]].Start * audio.SampleRate)
			}
			samples := append(append([]float32(nil), whole.Samples(0, from)...), whole.Samples(to, whole.Len())...)
			pcm, err := audio.Open(context.Background(), audio.Raw(samples, audio.SampleRate, 1), audio.Options{})
			require.NoError(t, err)
			speech, err := vad.Detect(context.Background(), l.vad, pcm, vad.DefaultOptions())
			require.NoError(t, err)
			a, err := align.Words(context.Background(), l.model, pcm, speech, words, align.Options{Language: item.Language})
			require.NoError(t, err)
			for i, w := range a.Words {
				if i >= gone[0] && i < gone[1] {
					missing.add(w.Missing)
				} else {
					found.add(!w.Missing)
				}
			}
			require.NoError(t, pcm.Close())
		}
		t.Logf("sound without the %s third: %d of %d words that are not in it missing (%.1f %%), %d of %d others found (%.1f %%)",
			part, missing.some, missing.all, missing.percent(), found.some, found.all, found.percent())
		require.NotZero(t, missing.all)
		assert.GreaterOrEqual(t, missing.percent(), 90.0, part)
		assert.GreaterOrEqual(t, found.percent(), 95.0, part)
	}
}
