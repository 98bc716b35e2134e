package dsp

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/dsp/fourier"
)

func noise(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestRealFFTAgreesWithGonum(t *testing.T) {
	for _, n := range []int{2, 4, 6, 8, 10, 12, 14, 16, 20, 30, 32, 60, 64, 70, 128, 160, 256, 400, 480, 512, 800, 1024, 2048} {
		f, err := newRealFFT(n)
		require.NoError(t, err)
		require.Equal(t, n, f.size())
		x := noise(n, uint64(n))
		wide := make([]float64, n)
		for i, v := range x {
			wide[i] = float64(v)
		}
		want := fourier.NewFFT(n).Coefficients(nil, wide)
		got := make([]complex64, n/2+1)
		f.coefficients(got, x)
		power := make([]float32, n/2+1)
		f.power(power, x)
		// Rounding grows with √n·log n; the bound is relative to the signal's norm.
		tol := 3e-7 * math.Sqrt(float64(n)) * math.Log2(float64(n)+2)
		for k := range want {
			assert.InDelta(t, 0, cmplx.Abs(complex128(got[k])-want[k]), tol, "n %d bin %d", n, k)
			p := real(want[k])*real(want[k]) + imag(want[k])*imag(want[k])
			assert.InDelta(t, p, float64(power[k]), 2*tol*(math.Sqrt(p)+1), "n %d bin %d", n, k)
		}
	}
}

func TestInterleavedTransformEqualsSingle(t *testing.T) {
	for _, n := range []int{16, 40, 400, 512, 1024} {
		p, err := newPlan(n, lanes)
		require.NoError(t, err)
		h := p.half * lanes
		xr, xi, yr, yi := make([]float32, h), make([]float32, h), make([]float32, h), make([]float32, h)
		signals := make([][]float32, lanes)
		for j := range signals {
			signals[j] = noise(n, uint64(j+n))
			for i := range p.half {
				xr[i*lanes+j], xi[i*lanes+j] = signals[j][2*i], signals[j][2*i+1]
			}
		}
		zr, zi := p.complexForward(xr, xi, yr, yi)
		got := make([]float32, h+lanes)
		p.power(got, zr, zi)
		f, err := newRealFFT(n)
		require.NoError(t, err)
		want := make([]float32, n/2+1)
		for j := range signals {
			f.power(want, signals[j])
			for k, w := range want {
				assert.InDelta(t, w, got[k*lanes+j], 2e-5*float64(w+float32(math.Sqrt(float64(n)))), "n %d lane %d bin %d", n, j, k)
			}
		}
	}
}

func TestRealFFTRefusesUnsupportedSizes(t *testing.T) {
	for _, n := range []int{-2, 0, 1, 3, 401, 22, 26 * 2} {
		_, err := newRealFFT(n)
		assert.ErrorContains(t, err, fmt.Sprintf("transform size %d", n))
	}
}

func TestLogarithmMatchesMathLog(t *testing.T) {
	worst := 0.0
	for e := -30; e < 40; e++ {
		for i := range 1000 {
			x := float32(math.Ldexp(1+float64(i)/1000, e))
			want := math.Log(float64(x))
			worst = max(worst, math.Abs(float64(ln(x))-want)/max(1, math.Abs(want)))
		}
	}
	assert.Less(t, worst, 2e-7)
}

func BenchmarkRealFFT(b *testing.B) {
	for _, n := range []int{400, 512, 1024} {
		x := noise(n, 1)
		b.Run(fmt.Sprintf("own/%d", n), func(b *testing.B) {
			f, _ := newRealFFT(n)
			out := make([]complex64, n/2+1)
			for b.Loop() {
				f.coefficients(out, x)
			}
		})
		b.Run(fmt.Sprintf("gonum/%d", n), func(b *testing.B) {
			f := fourier.NewFFT(n)
			wide := make([]float64, n)
			for i, v := range x {
				wide[i] = float64(v)
			}
			out := make([]complex128, n/2+1)
			for b.Loop() {
				f.Coefficients(out, wide)
			}
		})
		b.Run(fmt.Sprintf("interleaved/%d", n), func(b *testing.B) {
			p, _ := newPlan(n, lanes)
			h := p.half * lanes
			xr, xi, yr, yi := noise(h, 1), noise(h, 2), make([]float32, h), make([]float32, h)
			ar, ai := make([]float32, h), make([]float32, h)
			for b.Loop() {
				copy(ar, xr)
				copy(ai, xi)
				p.complexForward(ar, ai, yr, yi)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lanes, "ns/frame")
		})
	}
}
