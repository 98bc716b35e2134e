package vad

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
)

// refine is the refinement of all segments together: the definition of the
// borders that a Stream returns one by one.
func refine(list []Segment, probs []float32, pcm *audio.PCM, opt Options) []Segment {
	t := &Stream{opt: opt, sound: pcm, probs: probs}
	out := make([]Segment, len(list))
	least, silence := int(toSamples(opt.MinSpeech))+1, int(toSamples(opt.MinSilence))
	for i, s := range list {
		before, after := 0, pcm.Len()
		if i > 0 {
			before = list[i-1].End
		}
		if i+1 < len(list) {
			after = list[i+1].Start
		}
		r := &out[i]
		r.Start, r.End = t.refinedStart(s, before), t.refinedEnd(s, after)
		if i > 0 {
			pause := min(silence, s.Start-before)
			r.Start = max(r.Start, min(s.Start, out[i-1].End+pause))
			out[i-1].End = min(out[i-1].End, r.Start-pause)
		}
		r.End = max(r.End, min(s.End, r.Start+least))
	}
	return out
}

// scene returns sound and probabilities of random loudness and speech.
func scene(t *rapid.T) (x, probs []float32) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	probs = make([]float32, rapid.IntRange(1, 600).Draw(t, "windows"))
	x = make([]float32, max(1, len(probs)*Window-r.IntN(Window)))
	rare := 1 + r.IntN(40)
	level, p := 0.1, float32(0)
	for i := range x {
		if i%Window == 0 {
			if r.IntN(rare) == 0 {
				p = r.Float32()
			}
			probs[i/Window] = p
		}
		if r.IntN(3000) == 0 {
			level = math.Pow(10, -4*r.Float64())
		}
		x[i] = float32(level * (2*r.Float64() - 1))
	}
	return x, probs
}

// A stream that is fed in pieces returns the segments of the whole recording,
// never looks ahead, and needs only a little of the past.
func TestStreamInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, probs := scene(t)
		ms := func(name string, hi int) float64 { return float64(rapid.IntRange(0, hi).Draw(t, name)) / 1000 }
		opt := DefaultOptions()
		opt.MinSilence, opt.MinSpeech, opt.SpeechPad = ms("silence", 300), ms("speech", 300), ms("pad", 200)
		opt.MaxSpeech = ms("max", 3000)
		pcm := audio.FromSamples(x)
		want := padded(refine(stretches(probs, len(x), opt), probs, pcm, opt), len(x), toSamples(opt.SpeechPad))

		whole, err := Refined(probs, pcm, opt)
		assert.NoError(t, err)
		assert.Equal(t, append([]Segment{}, want...), append([]Segment{}, whole...), "at once")

		var tape audio.Tape
		s, err := NewStream(&tape, opt)
		assert.NoError(t, err)
		got := []Segment{}
		for at := 0; at < len(probs); {
			n := min(rapid.IntRange(1, 50).Draw(t, "piece"), len(probs)-at)
			tape.Append(x[at*Window : min((at+n)*Window, len(x))])
			got = append(got, s.Feed(probs[at:at+n])...)
			at += n
			tape.Forget(s.Needed())
		}
		got = append(got, s.Flush()...)
		assert.Equal(t, append([]Segment{}, want...), got, "in pieces")
	})
}

// A segment is returned soon after its end, however long the pause is.
func TestStreamReturnsEarly(t *testing.T) {
	const n = 10 * audio.SampleRate
	truth := audio.Span{Start: 2 * audio.SampleRate, End: 4 * audio.SampleRate}
	probs := late(n, truth, 0)
	s, err := NewStream(bursts(n, -20, -60, truth), DefaultOptions())
	assert.NoError(t, err)
	var starts []int // that are settled
	for i, p := range probs {
		if got := s.Feed([]float32{p}); len(got) > 0 {
			assert.NotEmpty(t, starts)
			for _, start := range starts {
				assert.Equal(t, got[0].Start, start)
			}
			assert.InDelta(t, 0.4, float64((i+1)*Window-truth.End)/audio.SampleRate, 0.1)
			assert.InDelta(t, truth.End, got[0].End, 700)
			return
		}
		start, settled, open, _ := s.Open()
		if now := (i + 1) * Window; now > truth.Start+audio.SampleRate/2 && now < truth.End {
			assert.True(t, open)
			assert.InDelta(t, truth.Start, start, 700)
			if settled {
				starts = append(starts, start)
			}
		}
	}
	t.Fatal("nothing was returned")
}

// A cut ends speech that continues, and later segments begin after it.
func TestStreamCut(t *testing.T) {
	const n = 6 * audio.SampleRate
	truth := audio.Span{Start: audio.SampleRate, End: 5 * audio.SampleRate}
	s, err := NewStream(bursts(n, -20, -60, truth), DefaultOptions())
	assert.NoError(t, err)
	probs := late(n, truth, 0)
	at := 3 * audio.SampleRate / Window
	assert.Empty(t, s.Feed(probs[:at]))
	assert.True(t, s.cut.speaking)
	first := s.Cut()
	assert.Len(t, first, 1)
	assert.Equal(t, at*Window, first[0].End)
	assert.False(t, s.Pending())
	rest := append(s.Feed(probs[at:]), s.Flush()...)
	assert.Len(t, rest, 1)
	assert.GreaterOrEqual(t, rest[0].Start, at*Window)
	assert.InDelta(t, truth.End+480, rest[0].End, 200)
	assert.Empty(t, s.Cut())
}
