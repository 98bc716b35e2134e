//go:build !amd64

package audio

import "unsafe"

// clampFinite leaves all samples to the caller.
func clampFinite([]float32, unsafe.Pointer) int { return 0 }

// stereoSums returns the sums of both channels of interleaved samples, of their
// squares and of their products, in one pass.
func stereoSums(block []float32) [5]float64 { return stereoSumsGo([5]float64{}, block) }

// mixStereo weights two interleaved channels and adds them up.
func mixStereo(mono, block []float32, left, right float32) {
	mixStereoGo(mono, block, left, right)
}
