package dsp

import (
	"fmt"
	"math"
)

// lanes is the number of frames transformed in parallel: eight float32 values
// fill one 256-bit register, and interleaving frames makes every butterfly work
// on whole registers without a shuffle.
const lanes = 8

// stage is a pass of the Stockham autosort transform: a butterfly of a radix
// over groups of m columns with stride s (in values, lanes included).
type stage struct {
	radix, m, s int
	// twiddles holds, for each p < m, radix-1 pairs (cos, sin) of w^p, w^2p …
	twiddles []float32
	// roots holds the matrix of roots of unity, (re, im), for other radices.
	roots []float32
}

// plan is an immutable real transform over lanes interleaved signals.
type plan struct {
	half   int // of the transform's size
	stages []stage
	// split holds e^(-2πik/n) as (re, im) for k = 0 … half/2: the factors that
	// turn the complex transform of the packed signal into the real one's.
	split []float32
}

// newPlan returns the transform of n samples. It panics unless n is even and half
// of it has no prime factor above 7.
func newPlan(n int) *plan {
	half := n / 2
	p := &plan{half: half}
	rest, s := half, lanes
	for _, r := range []int{4, 2, 3, 5, 7} {
		for ; rest > 0 && rest%r == 0; rest, s = rest/r, s*r {
			st := stage{radix: r, m: rest / r, s: s}
			for q := range st.m {
				for k := 1; k < r; k++ {
					si, co := math.Sincos(-2 * math.Pi * float64(q*k%rest) / float64(rest))
					st.twiddles = append(st.twiddles, float32(co), float32(si))
				}
			}
			for a := range r {
				for b := range r {
					si, co := math.Sincos(-2 * math.Pi * float64(a*b%r) / float64(r))
					st.roots = append(st.roots, float32(co), float32(si))
				}
			}
			p.stages = append(p.stages, st)
		}
	}
	if n%2 != 0 || rest != 1 {
		panic(fmt.Sprintf("dsp: transform of %d samples: expected an even number, half of it without a prime factor above 7", n))
	}
	for k := 0; k <= half/2; k++ {
		si, co := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
		p.split = append(p.split, float32(co), float32(si))
	}
	return p
}

// complexForward transforms the packed signal in (xr, xi), half*lanes values
// each, with the buffer (yr, yi). It returns the pair that holds the result.
func (p *plan) complexForward(xr, xi, yr, yi []float32) (zr, zi []float32) {
	for i := range p.stages {
		st := &p.stages[i]
		switch st.radix {
		case 4:
			radix4(xr, xi, yr, yi, st.twiddles, st.m, st.s)
		case 2:
			radix2(xr, xi, yr, yi, st.twiddles, st.m, st.s)
		default:
			radixN(xr, xi, yr, yi, st.twiddles, st.roots, st.radix, st.m, st.s)
		}
		xr, xi, yr, yi = yr, yi, xr, xi
	}
	return xr, xi
}

func radix2(xr, xi, yr, yi, tw []float32, m, s int) {
	for p := range m {
		wr, wi := tw[2*p], tw[2*p+1]
		ar, ai := xr[s*p:s*p+s], xi[s*p:s*p+s]
		br, bi := xr[s*(p+m):s*(p+m)+s], xi[s*(p+m):s*(p+m)+s]
		cr, ci := yr[2*s*p:2*s*p+s], yi[2*s*p:2*s*p+s]
		dr, di := yr[2*s*p+s:2*s*p+2*s], yi[2*s*p+s:2*s*p+2*s]
		for q := range ar {
			tr, ti := ar[q]-br[q], ai[q]-bi[q]
			cr[q], ci[q] = ar[q]+br[q], ai[q]+bi[q]
			dr[q], di[q] = tr*wr-ti*wi, tr*wi+ti*wr
		}
	}
}

func radix4Go(xr, xi, yr, yi, tw []float32, m, s int) {
	for p := range m {
		w := tw[6*p : 6*p+6 : 6*p+6]
		w1r, w1i, w2r, w2i, w3r, w3i := w[0], w[1], w[2], w[3], w[4], w[5]
		a, b, c, d := s*p, s*(p+m), s*(p+2*m), s*(p+3*m)
		xar, xai := xr[a:a+s], xi[a:a+s]
		xbr, xbi := xr[b : b+s][:len(xar)], xi[b : b+s][:len(xar)]
		xcr, xci := xr[c : c+s][:len(xar)], xi[c : c+s][:len(xar)]
		xdr, xdi := xr[d : d+s][:len(xar)], xi[d : d+s][:len(xar)]
		xai = xai[:len(xar)]
		o := 4 * s * p
		y0r, y0i := yr[o : o+s][:len(xar)], yi[o : o+s][:len(xar)]
		y1r, y1i := yr[o+s : o+2*s][:len(xar)], yi[o+s : o+2*s][:len(xar)]
		y2r, y2i := yr[o+2*s : o+3*s][:len(xar)], yi[o+2*s : o+3*s][:len(xar)]
		y3r, y3i := yr[o+3*s : o+4*s][:len(xar)], yi[o+3*s : o+4*s][:len(xar)]
		for q := range xar {
			ar, ai, cr, ci := xar[q], xai[q], xcr[q], xci[q]
			sr, si, dr, di := ar+cr, ai+ci, ar-cr, ai-ci
			br, bi, er, ei := xbr[q], xbi[q], xdr[q], xdi[q]
			tr, ti, ur, ui := br+er, bi+ei, br-er, bi-ei
			y0r[q], y0i[q] = sr+tr, si+ti
			vr, vi := dr+ui, di-ur
			y1r[q], y1i[q] = vr*w1r-vi*w1i, vr*w1i+vi*w1r
			vr, vi = sr-tr, si-ti
			y2r[q], y2i[q] = vr*w2r-vi*w2i, vr*w2i+vi*w2r
			vr, vi = dr-ui, di+ur
			y3r[q], y3i[q] = vr*w3r-vi*w3i, vr*w3i+vi*w3r
		}
	}
}

// radixN is the butterfly for the small odd radices: a plain matrix product
// with the roots of unity. Sizes with a factor such as 5 (400 = 2·4·2·5·5)
// spend little of their time here.
func radixN(xr, xi, yr, yi, tw, roots []float32, radix, m, s int) {
	for p := range m {
		for k := range radix {
			wr, wi := float32(1), float32(0)
			if k > 0 {
				i := 2 * (p*(radix-1) + k - 1)
				wr, wi = tw[i], tw[i+1]
			}
			outR, outI := yr[s*(radix*p+k):][:s], yi[s*(radix*p+k):][:s]
			clear(outR)
			clear(outI)
			for j := range radix {
				c, d := roots[2*(k*radix+j)], roots[2*(k*radix+j)+1]
				fr, fi := c*wr-d*wi, c*wi+d*wr
				inR, inI := xr[s*(p+j*m):][:s], xi[s*(p+j*m):][:s]
				multiplyAdd(outR, outI, inR, inI, fr, fi)
			}
		}
	}
}

func multiplyAddGo(outR, outI, inR, inI []float32, fr, fi float32) {
	outI, inR, inI = outI[:len(outR)], inR[:len(outR)], inI[:len(outR)]
	for q := range outR {
		r, i := inR[q], inI[q]
		outR[q] += r*fr - i*fi
		outI[q] += r*fi + i*fr
	}
}

// power writes |X|² of the real transform: (half+1)*lanes values.
func (p *plan) power(dst, zr, zi []float32) {
	top := dst[p.half*lanes:][:lanes]
	for j := range lanes {
		a, b := zr[j]+zi[j], zr[j]-zi[j]
		dst[j], top[j] = a*a, b*b
	}
	powerPairs(dst, zr, zi, p.split, p.half)
}

func powerPairsGo(dst, zr, zi, split []float32, half int) {
	const w = lanes
	for k := 1; 2*k <= half; k++ {
		wr, wi := split[2*k], split[2*k+1]
		ar, ai := zr[k*w:][:w], zi[k*w:][:w]
		br, bi := zr[(half-k)*w:][:w], zi[(half-k)*w:][:w]
		lo, hi := dst[k*w:][:w], dst[(half-k)*w:][:w]
		for j := range ar {
			er, ei := ar[j]+br[j], ai[j]-bi[j]
			or, oi := ai[j]+bi[j], br[j]-ar[j]
			tr, ti := or*wr-oi*wi, or*wi+oi*wr
			x, y := er+tr, ei+ti
			u, v := er-tr, ei-ti
			lo[j] = 0.25 * (x*x + y*y)
			hi[j] = 0.25 * (u*u + v*v)
		}
	}
}
