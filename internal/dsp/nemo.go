package dsp

import "math"

// NeMoMel computes NVIDIA NeMo's log-mel features in evaluation mode: signal
// pre-emphasis 0.97, centered transform of 512 with zeros beyond the ends,
// symmetric Hann window of 400 in its middle, power, Slaney mel scale with area
// normalization, 0-8000 Hz, ln(x + 2^-24).
type NeMoMel struct{ a analyzer }

// NewNeMoMel prepares features with the given number of bands (64, 80 and 128
// are in use).
func NewNeMoMel(bands int) *NeMoMel {
	// Centered frame t spans [160t-256, 160t+256); the window covers its middle
	// 400 samples. Zeros around a frame do not change the power spectrum.
	m := &NeMoMel{a: analyzer{
		hop: 160, offset: -200, edge: edgeZero, window: WindowHann.coefficients(400), scale: 1, signalPre: 0.97,
		bands:       edgesBank(bands, 512, melEdges(bands, 0, 8000, slaneyMel, slaneyHz), true),
		compression: compressLnAdd, floor: 1.0 / (1 << 24),
	}}
	m.a.init(512)
	return m
}

// Bands returns the number of values per frame.
func (m *NeMoMel) Bands() int { return len(m.a.bands) }

// Frames returns all frames of the centered transform of n samples, n/160 + 1.
func (m *NeMoMel) Frames(n int) int { return n/160 + 1 }

// Valid returns the frames that NeMo counts as valid, n/160: NeMo masks or
// drops the next one.
func (m *NeMoMel) Valid(n int) int { return n / 160 }

// Compute writes the first frames rows of Bands values to dst; frames is
// Frames(n), Valid(n) or less.
func (m *NeMoMel) Compute(dst, samples []float32, frames int) {
	m.a.compute(dst, samples, min(frames, m.Frames(len(samples))))
}

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

// Transpose writes the frames x bands matrix src to dst as bands rows of stride
// values: the layout [bands, T] of NeMo and CED models. If stride exceeds
// frames, the values beyond frames are not written.
func Transpose(dst, src []float32, frames, bands, stride int) {
	for t := range frames {
		for b, v := range src[t*bands : (t+1)*bands] {
			dst[b*stride+t] = v
		}
	}
}
