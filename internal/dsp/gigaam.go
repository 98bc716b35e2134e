package dsp

import "math"

// GigaAMMel computes the log-mel features of GigaAM: periodic Hann window,
// power, 64 bands 0-8000 Hz on the HTK scale (triangles linear in Hz, not
// normalized), every 10 ms, ln(max(x, 1e-9)). Version 2 has frames of 25 ms,
// centered with reflection; version 3 has frames of 20 ms, which lie inside the
// signal, and rounds window and filters to bfloat16, as in its training.
type GigaAMMel struct {
	a      analyzer
	window int // samples
	inside bool
}

// NewGigaAMMel prepares the features of version 2 or 3.
func NewGigaAMMel(version int) *GigaAMMel {
	m := &GigaAMMel{window: 400}
	offset := -200
	if version == 3 {
		m.window, m.inside, offset = 320, true, 0
	}
	m.a = analyzer{
		hop: 160, offset: offset, edge: edgeReflect, window: WindowHannPeriodic.coefficients(m.window), scale: 1,
		bands:       edgesBank(64, m.window, melEdges(64, 0, 8000, htkMel, htkHz), false),
		compression: compressLn, floor: 1e-9,
	}
	if m.inside {
		roundBrain(m.a.window)
		for _, b := range m.a.bands {
			roundBrain(b.weights)
		}
	}
	m.a.init(m.window)
	return m
}

// roundBrain rounds to the nearest bfloat16, with ties to even.
func roundBrain(x []float32) {
	for i, v := range x {
		bits := math.Float32bits(v)
		x[i] = math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
	}
}

// Bands returns 64.
func (m *GigaAMMel) Bands() int { return len(m.a.bands) }

// Valid returns the number of frames of n samples: n/160 + 1 in version 2, only
// frames inside the signal in version 3.
func (m *GigaAMMel) Valid(n int) int {
	if !m.inside {
		return n/160 + 1
	}
	if n < m.window {
		return 0
	}
	return (n-m.window)/160 + 1
}

// Compute writes the first frames rows of 64 values to dst; frames is Valid(n)
// or less.
func (m *GigaAMMel) Compute(dst, samples []float32, frames int) {
	m.a.compute(dst, samples, min(frames, m.Valid(len(samples))))
}
