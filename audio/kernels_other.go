//go:build !amd64

package audio

import "unsafe"

// dot returns the sum of a[i]·b[i]; both have a positive multiple of 8 values.
func dot(a, b []float32) float32 { return dotGo(a, b) }

// dotRow writes dot(row, buf[k·down:]) to out[k·up] for k < 3·groups.
func dotRow(out, row, buf []float32, groups, down, up int) { dotRowGo(out, row, buf, groups, down, up) }

// clampFinite leaves all samples to the caller.
func clampFinite([]float32, unsafe.Pointer) int { return 0 }

// stereoSums returns the sums of both channels of interleaved samples, of their
// squares and of their products, in one pass.
func stereoSums(block []float32) [5]float64 { return stereoSumsGo([5]float64{}, block) }

// mixStereo weights two interleaved channels and adds them up.
func mixStereo(mono, block []float32, left, right float32) { mixStereoGo(mono, block, left, right) }
