package dsp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
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

// TestTransformAgreesWithGonum transforms a different signal in each lane.
func TestTransformAgreesWithGonum(t *testing.T) {
	for _, n := range []int{2, 4, 6, 8, 10, 12, 14, 16, 20, 30, 32, 60, 64, 70, 128, 160, 256, 320, 400, 480, 512, 800, 1024, 2048} {
		p := newPlan(n)
		h := p.half * lanes
		xr, xi, yr, yi := make([]float32, h), make([]float32, h), make([]float32, h), make([]float32, h)
		signals := make([][]float64, lanes)
		for j := range signals {
			for i, v := range noise(n, uint64(j+n)) {
				signals[j] = append(signals[j], float64(v))
				if i%2 == 0 {
					xr[i/2*lanes+j] = v
				} else {
					xi[i/2*lanes+j] = v
				}
			}
		}
		zr, zi := p.complexForward(xr, xi, yr, yi)
		got := make([]float32, h+lanes)
		p.power(got, zr, zi)
		// Rounding grows with √n·log n; the bound is relative to the signal's norm.
		tol := 3e-7 * math.Sqrt(float64(n)) * math.Log2(float64(n)+2)
		for j, x := range signals {
			for k, w := range fourier.NewFFT(n).Coefficients(nil, x) {
				want := real(w)*real(w) + imag(w)*imag(w)
				assert.InDelta(t, want, float64(got[k*lanes+j]), 2*tol*(math.Sqrt(want)+1), "n %d lane %d bin %d", n, j, k)
			}
		}
	}
}

func TestUnsupportedSizesPanic(t *testing.T) {
	for _, n := range []int{1, 3, 401, 22, 26 * 2} {
		assert.PanicsWithValue(t, fmt.Sprintf("dsp: transform of %d samples: expected an even number, half of it without a prime factor above 7", n), func() { newPlan(n) })
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

func BenchmarkTransform(b *testing.B) {
	for _, n := range []int{320, 400, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := newPlan(n)
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
