package audio

import "unsafe"

//go:noescape
func clampAVX2(dst *float32, src unsafe.Pointer, n int) int

//go:noescape
func stereoSumsAVX2(out *[5]float64, block *float32, n int)

//go:noescape
func mixStereoAVX2(mono, block *float32, n int, left, right float32)

// clampFinite writes the samples at src through clamp to dst and returns the
// number of samples written. It leaves the last samples, and all from a NaN or
// infinite one on, to the caller.
func clampFinite(dst []float32, src unsafe.Pointer) int {
	if !hasFMA || len(dst) < 8 {
		return 0
	}
	return clampAVX2(&dst[0], src, len(dst)&^7)
}

// stereoSums returns the sums of both channels of interleaved samples, of their
// squares and of their products, in one pass.
func stereoSums(block []float32) (sums [5]float64) {
	n := 0
	if hasFMA && len(block) >= 8 {
		n = len(block) &^ 7
		stereoSumsAVX2(&sums, &block[0], n)
	}
	return stereoSumsGo(sums, block[n:])
}

// mixStereo weights two interleaved channels and adds them up.
func mixStereo(mono, block []float32, left, right float32) {
	n := 0
	if hasFMA && len(mono) >= 8 {
		n = len(mono) &^ 7
		_ = block[2*n-1]
		mixStereoAVX2(&mono[0], &block[0], n, left, right)
	}
	mixStereoGo(mono[n:], block[2*n:], left, right)
}
