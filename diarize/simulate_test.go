package diarize

import (
	"math"
	"math/rand/v2"

	"github.com/otograph/otograph/audio"
)

// simulated describes simulated embeddings with the cosines of a real ECAPA
// network: two embeddings of one speaker have a cosine in [low, high], the
// speakers' centers share a common part (their cosine).
type simulated struct {
	low, high float64 // default 0.55 … 0.75: 3 s of clean speech; 0.35 … 0.5: windows of 1.5 s
	common    float64 // default 0.12
}

// gauss fills v with a random direction of unit length.
func gauss(r *rand.Rand, v []float64) []float64 {
	var sq float64
	for i := range v {
		v[i] = r.NormFloat64()
		sq += v[i] * v[i]
	}
	for i := range v {
		v[i] /= math.Sqrt(sq)
	}
	return v
}

// blend returns unit(sqrt(share)·a + sqrt(1−share)·b).
func blend(share float64, a, b []float64) []float64 {
	out := make([]float64, len(a))
	var sq float64
	for i := range out {
		out[i] = math.Sqrt(share)*a[i] + math.Sqrt(1-share)*b[i]
		sq += out[i] * out[i]
	}
	for i := range out {
		out[i] /= math.Sqrt(sq)
	}
	return out
}

// simulate returns counts[s] embeddings of 192 numbers for each speaker s,
// ordered in turns of 2 to 12 windows, and their speakers.
func simulate(r *rand.Rand, counts []int, v simulated) (x matrix, truth []int) {
	if v.high == 0 {
		v.low, v.high = 0.55, 0.75
	}
	if v.common == 0 {
		v.common = 0.12
	}
	const dim = 192
	left, total := append([]int(nil), counts...), 0
	base := gauss(r, make([]float64, dim))
	centre := make([][]float64, len(counts))
	for s, n := range counts {
		total += n
		centre[s] = blend(v.common, base, gauss(r, make([]float64, dim)))
	}
	x = newMatrix(total, dim)
	for len(truth) < total {
		s := 0
		for pick := r.IntN(total - len(truth)); pick >= left[s]; s++ { // weighted by the remaining windows
			pick -= left[s]
		}
		for turn := min(2+r.IntN(11), left[s]); turn > 0; turn-- {
			share := v.low + (v.high-v.low)*r.Float64()
			for d, w := range blend(share, centre[s], gauss(r, make([]float64, dim))) {
				x.row(len(truth))[d] = float32(w)
			}
			truth = append(truth, s)
			left[s]--
		}
	}
	return x, truth
}

// timeline places n windows as if each turn of the truth were one speech
// segment: hop 0.75 s, half a second between segments.
func timeline(truth []int) *Embeddings {
	e := &Embeddings{}
	at := 0
	for i := range truth {
		if i > 0 && truth[i] == truth[i-1] {
			at += hopSamples
			e.Speech[len(e.Speech)-1].End = at + windowSamples
		} else {
			if i > 0 {
				at += windowSamples + audio.SampleRate/2
			}
			e.Speech = append(e.Speech, audio.Span{Start: at, End: at + windowSamples})
		}
		e.Windows = append(e.Windows, audio.Span{Start: at, End: at + windowSamples})
		e.Segment = append(e.Segment, len(e.Speech)-1)
	}
	return e
}
