package dsp

import "math"

// NewCEDMel returns the features of CED sound taggers: transform and periodic
// Hann window of 512, power, 64 bands 0-8000 Hz on the HTK scale (triangles
// linear in Hz, not normalized), 10·log10(max(x, 1e-10)) clamped to 120 dB below
// the maximum. Frames are centered with reflection, as in training. CED models
// take [64, T], see Transpose.
func NewCEDMel() *Extractor {
	e := newExtractor(&analyzer{
		offset: -256, edge: edgeReflect, window: WindowHannPeriodic.coefficients(512), scale: 1,
		bands: edgesBank(64, 512, melEdges(64, htkMel, htkHz), false), compression: compressDB, floor: 1e-10,
	}, 512, centered)
	e.finish = func(rows []float32) { clampBelowMaximum(rows, 120) }
	return e
}

// NewSpeechbrainFbank returns the features of speechbrain's ECAPA recipes, with
// the given number of bands (80 in the published models): centered transform of
// 400 with zeros beyond the ends, periodic Hamming window, power, symmetric
// triangles whose half-width is the distance from their center to the lower
// neighbor's, 10·log10(max(x, 1e-10)) clamped to 80 dB below the utterance's
// maximum. The mean is left to SubtractMean.
func NewSpeechbrainFbank(bands int) *Extractor {
	edges := melEdges(bands, htkMel, htkHz)
	e := newExtractor(&analyzer{
		offset: -200, edge: edgeZero, window: WindowHammingPeriodic.coefficients(400), scale: 1,
		bands: sparse(bands, 201, func(b, k int) float64 {
			c, w := edges[b+1], edges[b+1]-edges[b]
			return triangle(float64(k)*sampleRate/400, c-w, c, c+w)
		}),
		compression: compressDB, floor: 1e-10,
	}, 400, centered)
	e.finish = func(rows []float32) { clampBelowMaximum(rows, 80) }
	return e
}

// NewYAMNetMel returns YAMNet's log-mel features: frames of 400 samples inside
// the signal, periodic Hann window, magnitude of a transform of 512, 64 bands
// 125-7500 Hz, linear in 1127·ln(1+f/700), without bin 0, ln(x + 0.001).
func NewYAMNetMel() *Extractor {
	return newExtractor(&analyzer{
		window: WindowHannPeriodic.coefficients(400), scale: 1, magnitude: true,
		bands: kaldiBank(64, 125, 7500, true), compression: compressLnAdd, floor: 0.001,
	}, 512, inside(400))
}

// NewNeMoMel returns NVIDIA NeMo's log-mel features in evaluation mode, with
// the given number of bands (64, 80 and 128 are in use): pre-emphasis 0.97,
// centered transform of 512 with zeros beyond the ends, symmetric Hann window
// of 400 in its middle, power, Slaney mel scale with area normalization, 0-8000
// Hz, ln(x + 2^-24), without the last frame, which NeMo masks or drops.
func NewNeMoMel(bands int) *Extractor {
	// Centered frame t spans [160t-256, 160t+256); the window covers its middle
	// 400 samples. Zeros around a frame do not change the power spectrum.
	return newExtractor(&analyzer{
		offset: -200, edge: edgeZero, window: WindowHann.coefficients(400), scale: 1, signalPre: 0.97,
		bands:       edgesBank(bands, 512, melEdges(bands, slaneyMel, slaneyHz), true),
		compression: compressLnAdd, floor: 1.0 / (1 << 24),
	}, 512, func(n int) int { return n / frameShift })
}

// NewGigaAMMel returns the log-mel features of GigaAM: periodic Hann window,
// power, 64 bands 0-8000 Hz on the HTK scale (triangles linear in Hz, not
// normalized), ln(max(x, 1e-9)). Version 2 has frames of 25 ms, centered with
// reflection; version 3 has frames of 20 ms, which lie inside the signal, and
// rounds window and filters to bfloat16, as in its training.
func NewGigaAMMel(version int) *Extractor {
	window, offset, frames := 400, -200, centered
	if version == 3 {
		window, offset, frames = 320, 0, inside(320)
	}
	a := &analyzer{
		offset: offset, edge: edgeReflect, window: WindowHannPeriodic.coefficients(window), scale: 1,
		bands:       edgesBank(64, window, melEdges(64, htkMel, htkHz), false),
		compression: compressLn, floor: 1e-9,
	}
	if version == 3 {
		roundBrain(a.window)
		for _, b := range a.bands {
			roundBrain(b.weights)
		}
	}
	return newExtractor(a, window, frames)
}

// roundBrain rounds to the nearest bfloat16, with ties to even.
func roundBrain(x []float32) {
	for i, v := range x {
		bits := math.Float32bits(v)
		x[i] = math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
	}
}

// FbankOptions describes a Kaldi filter bank; start from DefaultFbankOptions.
type FbankOptions struct {
	Bands  int     // number of mel bands
	Window Window  // WindowPovey or WindowHamming in the published recipes
	HighHz float64 // upper edge of the last band; 0 or less counts from the Nyquist frequency down
	// SnipEdges keeps only frames inside the signal; else frames are centered
	// on shifts and the signal is mirrored.
	SnipEdges bool
	// Scale multiplies the samples first: 1 for recipes trained on [-1, 1],
	// 32768 for recipes trained on 16-bit integers.
	Scale float32
}

// DefaultFbankOptions returns Kaldi's defaults with 80 bands: povey window,
// bands up to the Nyquist frequency, snipped edges, unscaled samples.
func DefaultFbankOptions() FbankOptions {
	return FbankOptions{Bands: 80, Window: WindowPovey, SnipEdges: true, Scale: 1}
}

// NewFbank returns Kaldi's log mel filter bank without dither: frames of 25 ms,
// transform of 512, mean removal and pre-emphasis 0.97 inside each frame,
// window, power spectrum, triangles from 20 Hz linear on the scale
// 1127·ln(1+f/700), natural logarithm floored at the float32 epsilon.
func NewFbank(opt FbankOptions) *Extractor {
	const window = 400
	high := opt.HighHz
	if high <= 0 {
		high += sampleRate / 2
	}
	a := &analyzer{
		edge: edgeMirror, window: opt.Window.coefficients(window), scale: opt.Scale, framePre: 0.97,
		bands: kaldiBank(opt.Bands, 20, high, false), compression: compressLn, floor: 1.1920929e-07,
	}
	if opt.SnipEdges {
		return newExtractor(a, 512, inside(window))
	}
	a.offset = frameShift/2 - window/2
	return newExtractor(a, 512, func(n int) int { return (n + frameShift/2) / frameShift })
}
