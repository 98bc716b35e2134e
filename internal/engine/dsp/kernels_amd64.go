//go:build !purego

package dsp

import "golang.org/x/sys/cpu"

// wide reports whether the processor has the instructions of the kernels.
var wide = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func radix4AVX(xr, xi, yr, yi, tw *float32, m, s int)

//go:noescape
func multiplyAddAVX(outR, outI, inR, inI *float32, n int, fr, fi float32)

//go:noescape
func powerPairsAVX(dst, zr, zi, split *float32, half int)

//go:noescape
func bandSumsAVX(dst, weights, power *float32, n int)

func radix4(xr, xi, yr, yi, tw []float32, m, s int) {
	if !wide {
		radix4Go(xr, xi, yr, yi, tw, m, s)
		return
	}
	_, _, _, _, _ = xr[4*m*s-1], xi[4*m*s-1], yr[4*m*s-1], yi[4*m*s-1], tw[6*m-1]
	radix4AVX(&xr[0], &xi[0], &yr[0], &yi[0], &tw[0], m, s)
}

func multiplyAdd(outR, outI, inR, inI []float32, fr, fi float32) {
	n := len(outR)
	if !wide || n == 0 {
		multiplyAddGo(outR, outI, inR, inI, fr, fi)
		return
	}
	_, _, _ = outI[n-1], inR[n-1], inI[n-1]
	multiplyAddAVX(&outR[0], &outI[0], &inR[0], &inI[0], n, fr, fi)
}

func powerPairs(dst, zr, zi, split []float32, half int) {
	if !wide || half < 2 {
		powerPairsGo(dst, zr, zi, split, half)
		return
	}
	_, _, _, _ = dst[half*8-1], zr[half*8-1], zi[half*8-1], split[half|1]
	powerPairsAVX(&dst[0], &zr[0], &zi[0], &split[0], half)
}

func bandSums(dst *[lanes]float32, weights, power []float32) {
	n := len(weights)
	if !wide || n == 0 {
		bandSumsGo(dst, weights, power)
		return
	}
	_ = power[n*lanes-1]
	bandSumsAVX(&dst[0], &weights[0], &power[0], n)
}
