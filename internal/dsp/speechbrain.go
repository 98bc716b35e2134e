package dsp

// SpeechbrainFbank computes the features of speechbrain's ECAPA recipes: centered
// transform of 400 with zeros beyond the ends, periodic Hamming window, hop 160,
// power, 80 symmetric triangles, 10·log10(max(x, 1e-10)) clamped to 80 dB below
// the utterance's maximum, mean per band subtracted.
type SpeechbrainFbank struct{ a analyzer }

// NewSpeechbrainFbank prepares features with the given number of bands (80 in
// the published models).
func NewSpeechbrainFbank(bands int) *SpeechbrainFbank {
	m := &SpeechbrainFbank{a: analyzer{
		hop: 160, offset: -200, edge: edgeZero, window: WindowHammingPeriodic.coefficients(400), scale: 1,
		bands: speechbrainBank(bands, 400, 16000, 0, 8000), compression: compressDB, floor: 1e-10,
	}}
	m.a.init(400)
	return m
}

// Bands returns the number of values per frame.
func (m *SpeechbrainFbank) Bands() int { return len(m.a.bands) }

// Frames returns n/160 + 1.
func (m *SpeechbrainFbank) Frames(n int) int { return n/160 + 1 }

// Compute writes Frames(len(samples)) rows of Bands values to dst, clamped and
// with the mean removed over the whole utterance, and returns the number of
// frames.
func (m *SpeechbrainFbank) Compute(dst, samples []float32) int {
	n := m.Frames(len(samples))
	m.a.compute(dst, samples, n)
	dst = dst[:n*m.Bands()]
	clampBelowMaximum(dst, 80)
	SubtractMean(dst, n, m.Bands())
	return n
}

// clampBelowMaximum raises every value to at least the maximum minus span.
func clampBelowMaximum(x []float32, span float32) {
	if len(x) == 0 {
		return
	}
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	for i, v := range x {
		x[i] = max(v, top-span)
	}
}
