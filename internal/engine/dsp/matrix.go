package dsp

import (
	"math"
	"slices"
)

// NormalizePerFeature normalizes every band of a frames x bands matrix in place
// to mean 0 and standard deviation 1 (n-1 in the denominator, 1e-5 added to the
// deviation): NeMo's normalize_type per_feature.
func NormalizePerFeature(x []float32, frames, bands int) {
	if frames == 0 {
		return
	}
	for b := range bands {
		var sum float64
		for i := b; i < frames*bands; i += bands {
			sum += float64(x[i])
		}
		mean := sum / float64(frames)
		var sq float64
		for i := b; i < frames*bands; i += bands {
			d := float64(x[i]) - mean
			sq += d * d
		}
		dev := 0.0
		if frames > 1 {
			dev = math.Sqrt(sq / float64(frames-1))
		}
		inv := 1 / (dev + 1e-5)
		for i := b; i < frames*bands; i += bands {
			x[i] = float32((float64(x[i]) - mean) * inv)
		}
	}
}

// SubtractMean subtracts every band's mean over the utterance in place, as
// wespeaker, 3D-Speaker and speechbrain do after their filter banks.
func SubtractMean(x []float32, frames, bands int) {
	for b := range bands {
		var sum float64
		for i := b; i < frames*bands; i += bands {
			sum += float64(x[i])
		}
		mean := float32(sum / float64(max(frames, 1)))
		for i := b; i < frames*bands; i += bands {
			x[i] -= mean
		}
	}
}

// Transpose writes the frames x bands matrix src to dst as bands rows, whose
// starts lie stride values apart: the layout of NeMo and CED models.
func Transpose[T any](dst, src []T, frames, bands, stride int) {
	for t := range frames {
		for b, v := range src[t*bands : (t+1)*bands] {
			dst[b*stride+t] = v
		}
	}
}

// clampBelowMaximum raises every value to at least the maximum minus span.
func clampBelowMaximum(x []float32, span float32) {
	if len(x) == 0 {
		return
	}
	top := slices.Max(x)
	for i, v := range x {
		x[i] = max(v, top-span)
	}
}
