package dsp

// FbankOptions describes a Kaldi filter bank. The zero value is not usable;
// start from DefaultFbankOptions.
type FbankOptions struct {
	SampleRate  int     // Hz
	Bands       int     // number of mel bands
	FrameLength int     // samples
	FrameShift  int     // samples
	FFT         int     // transform size in samples, at least FrameLength
	Window      Window  // WindowPovey or WindowHamming in the published recipes
	LowHz       float64 // lower edge of the first band
	HighHz      float64 // upper edge of the last band; 0 or less counts from the Nyquist frequency down
	// SnipEdges keeps only frames that lie inside the signal. Without it, there
	// is a frame around every shift's middle, and the signal is mirrored at its
	// ends.
	SnipEdges bool
	// Scale multiplies the samples first: 1 for recipes trained on [-1, 1],
	// 32768 for recipes trained on 16-bit integers.
	Scale float32
	// PreEmphasis is applied inside each frame after removing its mean; 0 skips
	// both.
	PreEmphasis float32
	// Linear returns the band energies without the logarithm.
	Linear bool
}

// DefaultFbankOptions returns Kaldi's defaults with 80 bands at 16 kHz: 25 ms
// frames every 10 ms, transform of 512, povey window, 20 Hz to Nyquist, snipped
// edges, unscaled samples, pre-emphasis 0.97.
func DefaultFbankOptions() FbankOptions {
	return FbankOptions{
		SampleRate: 16000, Bands: 80, FrameLength: 400, FrameShift: 160, FFT: 512,
		Window: WindowPovey, LowHz: 20, SnipEdges: true, Scale: 1, PreEmphasis: 0.97,
	}
}

// Fbank computes Kaldi's log mel filter bank without dither: mean removal,
// pre-emphasis, window, power spectrum, triangles linear on the scale
// 1127·ln(1+f/700), natural logarithm floored at the float32 epsilon.
type Fbank struct {
	opt FbankOptions
	a   analyzer
}

// NewFbank prepares a filter bank. It panics on invalid sizes, because they are
// constants of a recipe and never input.
func NewFbank(opt FbankOptions) *Fbank {
	high := opt.HighHz
	if high <= 0 {
		high += float64(opt.SampleRate) / 2
	}
	f := &Fbank{opt: opt, a: analyzer{
		hop: opt.FrameShift, edge: edgeMirror, window: opt.Window.coefficients(opt.FrameLength), scale: opt.Scale,
		framePre: opt.PreEmphasis, bands: kaldiBank(opt.Bands, opt.FFT, opt.SampleRate, opt.LowHz, high, false),
		compression: compressLn, floor: 1.1920929e-07,
	}}
	if !opt.SnipEdges {
		f.a.offset = opt.FrameShift/2 - opt.FrameLength/2
	}
	if opt.Linear {
		f.a.compression = compressNone
	}
	f.a.init(opt.FFT)
	return f
}

// Bands returns the number of values per frame.
func (f *Fbank) Bands() int { return f.opt.Bands }

// Frames returns the number of frames of n samples.
func (f *Fbank) Frames(n int) int {
	if !f.opt.SnipEdges {
		return (n + f.opt.FrameShift/2) / f.opt.FrameShift
	}
	if n < f.opt.FrameLength {
		return 0
	}
	return 1 + (n-f.opt.FrameLength)/f.opt.FrameShift
}

// Compute writes Frames(len(samples)) rows of Bands values to dst and returns
// the number of frames. It panics if dst is shorter.
func (f *Fbank) Compute(dst, samples []float32) int {
	n := f.Frames(len(samples))
	f.a.compute(dst, samples, n)
	return n
}
