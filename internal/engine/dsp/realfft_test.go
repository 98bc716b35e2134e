package dsp

// The tests use the transform of a single signal to compare the batched one
// with gonum's.

// realFFT is the discrete Fourier transform of one real float32 signal. It
// holds its working memory, so only one goroutine may use it at a time.
//
// The signal's even and odd samples are packed as one complex signal of half
// the length, transformed by Stockham's autosort algorithm (radix 4, 2 and
// small odd radices) and split again.
type realFFT struct {
	plan           *plan
	xr, xi, yr, yi []float32
}

// newRealFFT prepares a transform of n samples. n must be even and n/2 must
// have no prime factor above 7; anything else is an error.
func newRealFFT(n int) (*realFFT, error) {
	p, err := newPlan(n, 1)
	if err != nil {
		return nil, err
	}
	b := make([]float32, 4*p.half)
	h := p.half
	return &realFFT{plan: p, xr: b[:h], xi: b[h : 2*h], yr: b[2*h : 3*h], yi: b[3*h:]}, nil
}

// size returns the number of samples n.
func (f *realFFT) size() int { return f.plan.n }

func (f *realFFT) forward(src []float32) (zr, zi []float32) {
	for i := range f.xr {
		f.xr[i], f.xi[i] = src[2*i], src[2*i+1]
	}
	return f.plan.complexForward(f.xr, f.xi, f.yr, f.yi)
}

// power writes |X[k]|² for k = 0 … n/2 to dst (at least n/2+1 values) from the
// n samples of src.
func (f *realFFT) power(dst, src []float32) {
	zr, zi := f.forward(src[:f.plan.n])
	f.plan.power(dst[:f.plan.half+1], zr, zi)
}

// coefficients writes X[k] = Σ src[t]·e^(-2πikt/n), k = 0 … n/2, to dst (at
// least n/2+1 values).
func (f *realFFT) coefficients(dst []complex64, src []float32) {
	zr, zi := f.forward(src[:f.plan.n])
	h := f.plan.half
	dst[0] = complex(zr[0]+zi[0], 0)
	dst[h] = complex(zr[0]-zi[0], 0)
	for k := 1; 2*k <= h; k++ {
		a, b := complex(zr[k], zi[k]), complex(zr[h-k], -zi[h-k])
		e, o := (a+b)/2, (a-b)*complex(0, -0.5)
		t := o * complex(f.plan.split[2*k], f.plan.split[2*k+1])
		x, y := e+t, e-t
		dst[k] = x
		dst[h-k] = complex(real(y), -imag(y))
	}
}
