package vad

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
)

// bursts returns noise of the given level between the samples of each span and
// faint noise elsewhere, in dB.
func bursts(n int, loud, faint float64, spans ...audio.Span) *audio.PCM {
	r := rand.New(rand.NewPCG(3, 4))
	amplitude := func(db float64) float64 { return math.Sqrt(3) * math.Pow(10, db/20) }
	x := make([]float32, n)
	for i := range x {
		a := amplitude(faint)
		for _, s := range spans {
			if i >= s.Start && i < s.End {
				a = amplitude(loud)
			}
		}
		x[i] = float32(a * (2*r.Float64() - 1))
	}
	return audio.FromSamples(x)
}

// late returns a network's delayed response to one burst: speech from the
// window in which it begins until some windows after its end.
func late(n int, s audio.Span, hangover int) fixedModel {
	probs := make(fixedModel, Windows(n))
	for i := range probs {
		probs[i] = 0.05
		if i >= s.Start/Window && i <= s.End/Window+hangover {
			probs[i] = 0.9
		}
	}
	return probs
}

func TestDetectFindsBordersOfSound(t *testing.T) {
	const n = 3 * audio.SampleRate
	opt := DefaultOptions()
	opt.SpeechPad = 0
	for _, truth := range []audio.Span{{Start: 16000, End: 30000}, {Start: 16123, End: 31999}, {Start: 20479, End: 26113}, {Start: 17000, End: 22000}} {
		for _, hangover := range []int{0, 3, 7} {
			for _, faint := range []float64{-200, -70, -40} {
				got, err := Detect(context.Background(), late(n, truth, hangover), bursts(n, -20, faint, truth), opt)
				require.NoError(t, err)
				require.Len(t, got, 1)
				assert.InDelta(t, truth.Start, got[0].Start, 0.005*audio.SampleRate, "start of %v, background %v dB", truth, faint)
				assert.InDelta(t, truth.End, got[0].End, 0.005*audio.SampleRate, "end of %v, background %v dB", truth, faint)
			}
		}
	}
}

// If a sound does not stand out from the pause, the probability decides the
// border.
func TestDetectInterpolatesWithoutContrast(t *testing.T) {
	const n = 100 * Window
	pcm := bursts(n, -20, -20)
	opt := DefaultOptions()
	opt.SpeechPad = 0
	probs := late(n, audio.Span{Start: 40 * Window, End: 60*Window - 1}, 0)
	probs[39], probs[60] = 0.2, 0.15
	got, err := Detect(context.Background(), probs, pcm, opt)
	require.NoError(t, err)
	// from 0.2 to 0.9 the probability crosses the threshold of 0.35 after 3/14
	// of a window, from 0.9 to 0.15 the threshold of 0.2 after 14/15
	assert.Equal(t, []Segment{{Start: 40*Window + int(math.Round((3.0/14-1)*Window)), End: 60*Window + int(math.Round((14.0/15-1)*Window))}}, got)
}

func TestRefinedBordersKeepMinimumLengths(t *testing.T) {
	const n = 4 * audio.SampleRate
	one, two := audio.Span{Start: 16000, End: 17000}, audio.Span{Start: 28000, End: 40000}
	probs := late(n, one, 12)
	for i, p := range late(n, two, 0) {
		probs[i] = max(probs[i], p)
	}
	opt := DefaultOptions()
	opt.SpeechPad = 0
	got, err := Detect(context.Background(), probs, bursts(n, -20, -70, one, two), opt)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, int(toSamples(opt.MinSpeech))+1, got[0].Len(), "62 ms of sound, heard as 450 ms")
	assert.InDelta(t, two.Start, got[1].Start, 80)
}

func TestRefineProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		probs := make([]float32, rapid.IntRange(1, 120).Draw(t, "windows"))
		x := make([]float32, max(1, len(probs)*Window-r.IntN(Window)))
		level, p := 0.1, float32(0)
		for i := range x {
			if i%Window == 0 {
				if r.IntN(4) == 0 {
					p = r.Float32()
				}
				probs[i/Window] = p
			}
			if r.IntN(3000) == 0 {
				level = math.Pow(10, -4*r.Float64())
			}
			x[i] = float32(level * (2*r.Float64() - 1))
		}
		pcm := audio.FromSamples(x)
		opt := DefaultOptions()
		opt.MinSilence = float64(rapid.IntRange(0, 300).Draw(t, "silence")) / 1000
		opt.MinSpeech = float64(rapid.IntRange(0, 300).Draw(t, "speech")) / 1000
		coarse := stretches(probs, len(x), opt)
		fine := refine(coarse, probs, pcm, opt)
		if len(fine) != len(coarse) {
			t.Fatalf("%d segments of %d", len(fine), len(coarse))
		}
		last := 0
		for i, s := range fine {
			if s.Start < last || s.End > len(x) {
				t.Fatalf("segment %v after %d in %d samples", s, last, len(x))
			}
			if float64(s.Len()) < toSamples(opt.MinSpeech)-Window || s.Len() <= 0 {
				t.Fatalf("segment %v, of %v, is shorter than %v", s, coarse[i], opt.MinSpeech)
			}
			if i > 0 && float64(s.Start-last) < math.Floor(min(toSamples(opt.MinSilence), float64(coarse[i].Start-coarse[i-1].End))) {
				t.Fatalf("a pause of %d between %v and %v, of %v and %v", s.Start-last, fine[i-1], s, coarse[i-1], coarse[i])
			}
			if s.Start < coarse[i].Start-startReach || s.Start > coarse[i].Start+Window+frameLen || s.End > coarse[i].End+Window || s.End < coarse[i].End-endReach {
				t.Fatalf("%v became %v", coarse[i], s)
			}
			last = s.End
		}
	})
}
