package dsp

// YAMNetMel computes YAMNet's log-mel features: frames of 400 samples every 160
// without centring, periodic Hann window, magnitude of a transform of 512, 64
// bands 125-7500 Hz linear on the scale 1127·ln(1+f/700) without bin 0,
// ln(x + 0.001).
type YAMNetMel struct{ a analyzer }

// NewYAMNetMel prepares the features.
func NewYAMNetMel() *YAMNetMel {
	m := &YAMNetMel{a: analyzer{
		hop: 160, window: WindowHannPeriodic.coefficients(400), scale: 1, magnitude: true,
		bands: kaldiBank(64, 512, 16000, 125, 7500, true), compression: compressLnAdd, floor: 0.001,
	}}
	m.a.init(512)
	return m
}

// Frames returns the number of whole frames in n samples.
func (m *YAMNetMel) Frames(n int) int {
	if n < 400 {
		return 0
	}
	return 1 + (n-400)/160
}

// Compute writes Frames(len(samples)) rows of 64 values to dst and returns the
// number of frames.
func (m *YAMNetMel) Compute(dst, samples []float32) int {
	n := m.Frames(len(samples))
	m.a.compute(dst, samples, n)
	return n
}
