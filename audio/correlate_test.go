package audio

import (
	"math"
	"math/bits"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"
)

// correlate returns the largest normalized correlation of two recordings and
// its lag of a relative to b, in samples.
func correlate(a, b []float32) (best float64, lag int) {
	n := 1 << bits.Len(uint(len(a)+len(b)))
	fft := fourier.NewFFT(n)
	spectrum := func(x []float32) ([]complex128, float64) {
		w, e := make([]float64, n), 0.0
		for i, v := range x {
			w[i] = float64(v)
			e += w[i] * w[i]
		}
		return fft.Coefficients(nil, w), e
	}
	x, ex := spectrum(a)
	y, ey := spectrum(b)
	for i := range x {
		x[i] *= cmplx.Conj(y[i])
	}
	for i, v := range fft.Sequence(nil, x) {
		v /= float64(n) * math.Sqrt(ex*ey)
		if v > best {
			best, lag = v, i
		}
	}
	if lag > n/2 {
		lag -= n
	}
	return best, lag
}
