package diarize

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func dot2x4AVX2(out *[8]float32, a0, a1, b0, b1, b2, b3 *float32, n int)

// dot2x4 multiplies each of a0, a1 with each of b0 … b3, all of equal length:
// out[0:4] are a0's products, out[4:8] a1's.
func dot2x4(out *[8]float32, a0, a1, b0, b1, b2, b3 []float32) {
	n := len(a0) &^ 7
	if !hasAVX2 || n == 0 {
		dot2x4Go(out, a0, a1, b0, b1, b2, b3)
		return
	}
	dot2x4AVX2(out, &a0[0], &a1[0], &b0[0], &b1[0], &b2[0], &b3[0], n)
	if n < len(a0) {
		var rest [8]float32
		dot2x4Go(&rest, a0[n:], a1[n:], b0[n:], b1[n:], b2[n:], b3[n:])
		for i, v := range rest {
			out[i] += v
		}
	}
}
