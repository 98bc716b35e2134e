package decode

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
)

const second = audio.SampleRate

// spans converts seconds to speech: begin, end, begin, end …
func spans(seconds ...float64) []audio.Span {
	var s []audio.Span
	for i := 0; i < len(seconds); i += 2 {
		s = append(s, audio.Span{Start: int(math.Round(seconds[i] * second)), End: int(math.Round(seconds[i+1] * second))})
	}
	return s
}

func silent(seconds float64) *audio.PCM {
	return audio.FromSamples(make([]float32, int(seconds*second)))
}

func TestSpokenReturnsTheWindowsSpeech(t *testing.T) {
	w := Window{
		Pieces: []audio.Span{{Start: 100, End: 300}, {Start: 500, End: 900}},
		Speech: []audio.Span{{Start: 120, End: 150}, {Start: 200, End: 290}, {Start: 510, End: 880}},
	}
	assert.Equal(t, []audio.Span{{Start: 20, End: 50}, {Start: 100, End: 190}, {Start: 210, End: 580}}, w.Spoken())
	for i, s := range w.Spoken() {
		start, _ := s.Seconds()
		want, _ := w.Speech[i].Seconds()
		assert.InDelta(t, want, w.Time(start), 1e-9, "converted back")
	}
	assert.Empty(t, Window{}.Spoken())
}

func TestPackFillsWindows(t *testing.T) {
	for _, c := range []struct {
		name   string
		speech []audio.Span
		opt    PackOptions
		want   [][]audio.Span // pieces
	}{
		{"none", nil, PackOptions{}, nil},
		{"one segment, padded by the file's own sound", spans(1, 2), PackOptions{}, [][]audio.Span{spans(0.8, 2.5)}},
		{"padding ends with the file", spans(0.1, 59.9), PackOptions{Max: 61}, [][]audio.Span{spans(0, 60)}},
		{"a short pause stays whole", spans(1, 2, 2.4, 3), PackOptions{}, [][]audio.Span{spans(0.8, 3.5)}},
		{"a long pause is shortened in its middle", spans(1, 2, 5, 6), PackOptions{}, [][]audio.Span{spans(0.8, 2.25, 4.75, 6.5)}},
		{"no padding into other speech", spans(1, 9, 9.1, 17), PackOptions{Max: 10}, [][]audio.Span{spans(0.8, 9.1), spans(9, 17.5)}},
		{"windows end in the long pause", spans(1, 4, 4.2, 6, 7.5, 9, 9.3, 12), PackOptions{Max: 8}, [][]audio.Span{spans(0.8, 6.5), spans(7.3, 12.5)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got [][]audio.Span
			for _, w := range Pack(c.speech, silent(60), c.opt) {
				got = append(got, w.Pieces)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// Many windows begin with a short one, up to the longest pause.
func TestPackOpensEarly(t *testing.T) {
	opening := PackOptions{Max: 10, Opening: 6}
	many := []float64{1, 3, 4, 5.5, 6.5, 7.5, 8.7, 9.7} // 2, 4, 5.5 and 7 s of speech and pauses of 0.5 s
	for at := 15.0; at < 70; at += 10 {
		many = append(many, at, at+9)
	}
	for name, tt := range map[string]struct {
		speech []audio.Span
		opt    PackOptions
		first  float64 // seconds of speech
	}{
		"many windows":   {spans(many...), opening, 4.5},
		"not asked for":  {spans(many...), PackOptions{Max: 10}, 5.5},
		"four windows":   {spans(many[:14]...), opening, 5.5},
		"the next pause": {spans(many[8:]...), opening, 9},
	} {
		windows := Pack(tt.speech, silent(90), tt.opt)
		assert.InDelta(t, tt.first, windows[0].SpeechSeconds(), 1e-6, name)
		var all []audio.Span
		for _, w := range windows {
			all = append(all, w.Speech...)
		}
		assert.Equal(t, tt.speech, all, name)
	}
}

func TestPackCutsLongSpeechAtTheQuietestPoint(t *testing.T) {
	x := make([]float32, 70*second)
	r := rand.New(rand.NewSource(1))
	for i := range x {
		x[i] = float32(r.NormFloat64()) * 0.1
	}
	hush := func(at, seconds float64) {
		for i := int(at * second); i < int((at+seconds)*second); i++ {
			x[i] /= 50
		}
	}
	hush(20, 0.4) // outside of the searched range
	hush(27.5, 0.1)
	hush(55, 0.1)
	windows := Pack(spans(0.5, 69.5), audio.FromSamples(x), PackOptions{})
	require.Len(t, windows, 3)
	assert.InDelta(t, 27.55, float64(windows[0].Speech[0].End)/second, 0.03)
	assert.InDelta(t, 55.05, float64(windows[1].Speech[0].End)/second, 0.03)
	for _, w := range windows {
		assert.LessOrEqual(t, w.Len(), 30*second)
	}
}

func TestPackProperties(t *testing.T) {
	pcm := silent(400)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		at := 0
		var speech []audio.Span
		for range n {
			at += rapid.IntRange(0, 5*second).Draw(t, "pause")
			end := at + rapid.IntRange(1, 12*second).Draw(t, "speech")
			if end > pcm.Len() {
				break
			}
			speech = append(speech, audio.Span{Start: at, End: end})
			at = end
		}
		opt := PackOptions{Max: rapid.SampledFrom([]float64{5, 10, 30}).Draw(t, "max"), Opening: rapid.SampledFrom([]float64{0, 4, 8}).Draw(t, "opening")}
		windows := Pack(speech, pcm, opt)
		require.Equal(t, windows, Pack(speech, pcm, opt), "deterministic")
		var said []audio.Span
		for _, w := range windows {
			require.LessOrEqual(t, w.Len(), int(opt.Max*second))
			before := -1
			for _, p := range w.Pieces {
				require.Greater(t, p.Start, before)
				require.Greater(t, p.End, p.Start)
				before = p.End
			}
			last := -1.0
			for i := 0; i <= w.Len(); i += second / 7 {
				now := w.Time(float64(i) / second)
				require.GreaterOrEqual(t, now, last)
				last = now
				at := int(math.Round(now * second))
				require.True(t, slices.ContainsFunc(w.Pieces, func(p audio.Span) bool { return at >= p.Start && at <= p.End }))
			}
			for _, s := range w.Speech {
				require.True(t, slices.ContainsFunc(w.Pieces, func(p audio.Span) bool { return s.Start >= p.Start && s.End <= p.End }),
					"speech lies within a piece")
				if k := len(said) - 1; k >= 0 && said[k].End == s.Start {
					said[k].End = s.End
				} else {
					said = append(said, s)
				}
			}
			require.Len(t, w.Samples(nil, pcm), w.Len())
		}
		var want []audio.Span // neighbors that touch count as one here
		for _, s := range speech {
			if k := len(want) - 1; k >= 0 && want[k].End == s.Start {
				want[k].End = s.End
			} else {
				want = append(want, s)
			}
		}
		require.Equal(t, want, said, "the windows contain all speech exactly once")
	})
}

func TestWindowTimeAndRest(t *testing.T) {
	w := Window{Pieces: spans(10, 12, 20, 23), Speech: spans(10.2, 11.8, 20.2, 22.8)}
	for in, want := range map[float64]float64{-1: 10, 0: 10, 1.5: 11.5, 2: 12, 2.5: 20.5, 5: 23, 9: 23} {
		assert.InDelta(t, want, w.Time(in), 1e-9, "%g", in)
	}
	assert.InDelta(t, 4.2, w.SpeechSeconds(), 1e-9)
	assert.Equal(t, Window{Pieces: spans(11, 12, 20, 23), Speech: spans(11, 11.8, 20.2, 22.8)}, w.Rest(11))
	assert.Equal(t, Window{Pieces: spans(21, 23), Speech: spans(21, 22.8)}, w.Rest(21))
	assert.Equal(t, Window{}, w.Rest(30))
	assert.Equal(t, Window{Pieces: spans(11, 12, 20, 21), Speech: spans(11, 11.8, 20.2, 21)}, w.Part(11, 21))
	assert.Equal(t, Window{Pieces: spans(21, 22.9), Speech: spans(21, 22.8)}, w.Part(21, 22.9))
}
