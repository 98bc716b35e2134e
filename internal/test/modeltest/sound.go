package modeltest

import (
	"math"
	"math/rand/v2"

	"github.com/otograph/otograph/audio"
)

// Speech returns audio at audio.SampleRate that voice activity detectors
// recognize as speech: a glottal pulse train with varying pitch through three
// varying resonances, syllables of 120 to 280 ms, hisses between them, phrases
// of 1.5 to 6 s, pauses of 0.3 to 2 s, and faint background noise. voices
// speakers take turns; they differ in pitch and vocal tract. The same arguments
// produce the same samples.
func Speech(seconds float64, voices int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([]float32, int(seconds*audio.SampleRate))
	for i := range out {
		out[i] = float32(r.NormFloat64() * 3e-4)
	}
	between := func(lo, hi float64) float64 { return lo + r.Float64()*(hi-lo) }
	samples := func(seconds float64) int { return int(seconds * audio.SampleRate) }
	for at := samples(between(0.3, 0.8)); at < len(out); {
		voice := r.IntN(max(1, voices))
		end := min(len(out), at+samples(between(1.5, 6)))
		at = phrase(out, at, end, voice, r, between)
		at += samples(between(0.3, 2))
	}
	return out
}

// formants are the first three resonances of vowels, in Hz.
var formants = [][3]float64{
	{730, 1090, 2440}, {530, 1840, 2480}, {270, 2290, 3010}, {570, 840, 2410}, {300, 870, 2240}, {490, 1350, 1690}, {660, 1720, 2410},
}

// phrase writes syllables from at to end and returns where it ended.
func phrase(out []float32, at, end, voice int, r *rand.Rand, between func(lo, hi float64) float64) int {
	pitch := 105 * math.Pow(1.32, float64(voice%4)) // Hz
	tract := 1 + 0.07*float64(voice%4)              // shorter vocal tracts resonate higher
	base, start := pitch, at
	var low [3][2]float64 // memory of the resonators
	now := formants[r.IntN(len(formants))]
	var period float64
	for at < end {
		if r.Float64() < 0.45 { // a hiss before the vowel
			n := min(end-at, int(between(0.04, 0.1)*audio.SampleRate))
			var last float64
			for i := range n {
				x := r.NormFloat64()
				out[at+i] += float32((x - last) * 0.02 * math.Sin(math.Pi*float64(i)/float64(n)))
				last = x
			}
			at += n
		}
		goal := formants[r.IntN(len(formants))]
		n := min(end-at, int(between(0.12, 0.28)*audio.SampleRate))
		// The pitch falls during the phrase and varies within each syllable.
		level := base * (1.12 - 0.25*float64(at-start)/float64(max(1, end-start)))
		bend := between(-0.12, 0.12)
		for i := range n {
			t := float64(i) / float64(n)
			period += level * (1 + bend*math.Sin(math.Pi*t)) / audio.SampleRate
			x := r.NormFloat64() * 0.01
			if period >= 1 {
				period--
				x++
			}
			var y float64
			for k := range 3 {
				now[k] += (goal[k]*tract - now[k]) * 6e-4
				width := 60 + 40*float64(k)
				radius := math.Exp(-math.Pi * width / audio.SampleRate)
				v := x + 2*radius*math.Cos(2*math.Pi*now[k]/audio.SampleRate)*low[k][0] - radius*radius*low[k][1]
				low[k][1], low[k][0] = low[k][0], v
				y += v * [3]float64{1, 0.6, 0.3}[k]
			}
			out[at+i] += float32(y * 0.03 * math.Sqrt(math.Sin(math.Pi*t)+1e-3))
		}
		at += n
	}
	return at
}
