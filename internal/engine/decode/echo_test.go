package decode

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// sentence returns a made-up sentence: syllables of noise with pauses.
func sentence(seed int64, seconds float64) []float32 {
	r := rand.New(rand.NewSource(seed))
	x := make([]float32, int(seconds*second))
	var low float32
	for i := range x {
		low += 0.1 * (float32(r.NormFloat64()) - low)
		x[i] = low * float32(math.Pow(math.Sin(math.Pi*float64(i)/4000), 2))
	}
	return x
}

// TestCopiesOfSoundAreRemoved: exact copies are removed, also quieter ones with
// noise, and nothing else is.
func TestCopiesOfSoundAreRemoved(t *testing.T) {
	a, b := sentence(1, 2), sentence(2, 2)
	pause := func(seconds float64) []float32 { return make([]float32, int(seconds*second)) }
	softly := make([]float32, len(a))
	r := rand.New(rand.NewSource(3))
	for i, v := range a {
		softly[i] = v/3 + 0.02*float32(r.NormFloat64())
	}
	loud := make([]float32, 2*second)
	for i := range loud {
		loud[i] = float32(r.NormFloat64())
	}
	hum := make([]float32, 8*second)
	for i := range hum {
		hum[i] = float32(math.Sin(2 * math.Pi * 50 * float64(i) / second))
	}
	for i, v := range append(append(append([]float32(nil), a...), pause(0.3)...), b...) {
		hum[i] += v
	}
	for _, test := range []struct {
		name  string
		parts [][]float32
		lags  []float64
	}{
		{"different sentences", [][]float32{a, pause(0.2), b}, nil},
		{"hum", [][]float32{hum}, nil},
		{"silence", [][]float32{pause(9)}, nil},
		{"too short for a copy", [][]float32{a, pause(0.008)}, nil},
		{"six in a row", [][]float32{a, a, a, a, a, a}, []float64{2, 2, 2, 2, 2}},
		{"six without pauses", [][]float32{loud, loud, loud, loud, loud, loud}, []float64{2, 2, 2, 2, 2}},
		{"other pauses", [][]float32{a, pause(0.2), a, pause(0.41), a}, []float64{2.2, 4.61}},
		{"another sentence between", [][]float32{a, pause(0.2), b, pause(0.2), a}, []float64{4.4}},
		{"softer, with noise", [][]float32{a, pause(0.3), softly, pause(0.2)}, []float64{2.3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var x []float32
			for _, p := range test.parts {
				x = append(x, p...)
			}
			pcm := audio.FromSamples(x)
			before := Pack([]audio.Span{{End: len(x)}}, pcm, PackOptions{})[0]
			var lags []float64
			removed := 0.0
			distinct, echoes := new(Finder).Distinct(before, pcm)
			for _, e := range echoes {
				lags = append(lags, e.lag)
				removed += e.to - e.from
			}
			require.InDeltaSlice(t, test.lags, lags, 0.01)
			assert.InDelta(t, removed, float64(before.Len()-distinct.Len())/second, 0.02)
			assert.InDelta(t, removed, before.SpeechSeconds()-distinct.SpeechSeconds(), 0.3)
		})
	}
}

// TestDistinctOfManyLags: with a separate pause before each, copies have many
// lags, some of them a millisecond apart, and only the first remains.
func TestDistinctOfManyLags(t *testing.T) {
	a := sentence(1, 2)
	x := slices.Clone(a)
	for _, pause := range []int{1601, 1613, 3333, 1621, 5010} {
		x = append(append(x, make([]float32, pause)...), a...)
	}
	pcm := audio.FromSamples(x)
	windows := Pack([]audio.Span{{End: len(x)}}, pcm, PackOptions{})
	removed := 0.0
	distinct, echoes := new(Finder).Distinct(windows[0], pcm)
	for _, e := range echoes {
		removed += e.to - e.from
	}
	assert.InDelta(t, 10, removed, 0.3)
	assert.InDelta(t, 2.4, distinct.SpeechSeconds(), 0.5)
}

// TestRepeat: words in the original of a copy are copied with their distances,
// across a silence that the window leaves out.
func TestRepeat(t *testing.T) {
	a := sentence(1, 2)
	x := append(append(append(make([]float32, 0, 9*second), a...), make([]float32, 3*second)...), a...)
	x = append(x, a...)
	pcm := audio.FromSamples(x)
	windows := Pack([]audio.Span{{End: 2 * second}, {Start: 5 * second, End: 9 * second}}, pcm, PackOptions{})
	require.Len(t, windows, 1)
	_, echoes := new(Finder).Distinct(windows[0], pcm)
	word := func(text string, start, end float64) Word {
		return Word{Word: asr.Word{Text: text, Start: start, End: end}}
	}
	var got []string
	for _, w := range Repeat([]Word{word(" one", 0.1, 0.9), word(" two.", 1.1, 1.8)}, echoes) {
		got = append(got, w.Text)
		want := map[string][]float64{" one": {0.1, 5.1, 7.1}, " two.": {1.1, 6.1, 8.1}}[w.Text]
		assert.InDelta(t, want[(len(got)-1)/2], w.Start, 0.01)
	}
	assert.Equal(t, []string{" one", " two.", " one", " two.", " one", " two."}, got)
	assert.Empty(t, Repeat(nil, echoes))
	elsewhere := []Word{word(" other", 20, 21)}
	assert.Equal(t, elsewhere, Repeat(elsewhere, echoes), "words of other windows")
}
