//go:build !amd64 || purego

package dsp

func radix4(xr, xi, yr, yi, tw []float32, m, s int) { radix4Go(xr, xi, yr, yi, tw, m, s) }

func multiplyAdd(outR, outI, inR, inI []float32, fr, fi float32) {
	multiplyAddGo(outR, outI, inR, inI, fr, fi)
}

func powerPairs(dst, zr, zi, split []float32, half int) { powerPairsGo(dst, zr, zi, split, half) }

func bandSums(dst *[lanes]float32, weights, power []float32) { bandSumsGo(dst, weights, power) }
