package dsp

// CEDMel computes the features of CED sound taggers: transform and periodic Hann
// window of 512, hop 160, power, 64 bands 0-8000 Hz on the HTK scale (triangles
// linear in Hz, not normalized), 10·log10(max(x, 1e-10)) clamped to 120 dB below
// the maximum. Frames are centered with reflection, as in training.
type CEDMel struct{ a analyzer }

// NewCEDMel prepares the features.
func NewCEDMel() *CEDMel {
	m := &CEDMel{a: analyzer{
		hop: 160, offset: -256, edge: edgeReflect, window: WindowHannPeriodic.coefficients(512), scale: 1,
		bands: edgesBank(64, 512, melEdges(64, 0, 8000, htkMel, htkHz), false), compression: compressDB, floor: 1e-10,
	}}
	m.a.init(512)
	return m
}

// Bands returns 64.
func (m *CEDMel) Bands() int { return len(m.a.bands) }

// Frames returns n/160 + 1.
func (m *CEDMel) Frames(n int) int { return n/160 + 1 }

// Compute writes Frames(len(samples)) rows of 64 values to dst, clamped as a
// whole, and returns the number of frames. The layout is frames x bands; CED
// models take [64, T], see Transpose.
func (m *CEDMel) Compute(dst, samples []float32) int {
	n := m.Frames(len(samples))
	m.a.compute(dst, samples, n)
	clampBelowMaximum(dst[:n*m.Bands()], 120)
	return n
}
