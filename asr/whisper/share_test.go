package whisper

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/decode"
)

// ofSpeech makes windows that hold so many seconds of speech.
func ofSpeech(seconds ...float64) []decode.Window {
	var windows []decode.Window
	for _, s := range seconds {
		windows = append(windows, decode.Window{Speech: []audio.Span{{End: int(s * audio.SampleRate)}}})
	}
	return windows
}

func TestShare(t *testing.T) {
	for name, c := range map[string]struct {
		windows []decode.Window
		cores   int
		want    shares
	}{
		"one, one core":                {ofSpeech(5), 1, shares{single: []int{0}}},
		"one, two cores":               {ofSpeech(5), 2, shares{single: []int{}, joint: []int{0}, threads: 2}},
		"two, two cores":               {ofSpeech(5, 20), 2, shares{single: []int{1, 0}}},
		"three, two cores":             {ofSpeech(23, 20, 24), 2, shares{single: []int{2, 0}, joint: []int{1}, threads: 2}},
		"three, eight cores":           {ofSpeech(20, 20, 20), 8, shares{single: []int{}, joint: []int{0, 1, 2}, threads: 2}},
		"three, four cores":            {ofSpeech(20, 20, 20), 4, shares{single: []int{0, 1, 2}}},
		"ten, eight cores":             {ofSpeech(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 8, shares{single: []int{9, 8, 7, 6, 5, 4, 3, 2}, joint: []int{1, 0}, threads: 4}},
		"ending early is no advantage": {ofSpeech(100, 20, 20), 2, shares{single: []int{0, 1, 2}}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, share(c.windows, c.cores)) })
	}
}

func TestShareTakesEachWindowOnceAndNoMoreThreadsThanCores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := ofSpeech(rapid.SliceOfN(rapid.Float64Range(0, 30), 1, 60).Draw(t, "speech")...)
		cores := rapid.IntRange(1, 16).Draw(t, "cores")
		s := share(windows, cores)
		all := append(slices.Clone(s.single), s.joint...)
		slices.Sort(all)
		for i, w := range all {
			assert.Equal(t, i, w)
		}
		assert.Len(t, all, len(windows))
		if len(s.joint) > 0 {
			assert.GreaterOrEqual(t, s.threads, 2)
			assert.LessOrEqual(t, s.threads*len(s.joint), cores)
		}
	})
}
