package audio

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Every x86-64 processor since 2015 has both; the compiler may not assume it.
var hasFMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// dotFMA returns the sum of a[i]·b[i] for i < n, a positive multiple of 8.
//
//go:noescape
func dotFMA(a, b *float32, n int) float32

// dot returns the sum of a[i]·b[i]; both have a positive multiple of 8 values.
func dot(a, b []float32) float32 {
	if hasFMA {
		b = b[:len(a)]
		return dotFMA(&a[0], &b[0], len(a))
	}
	return dotGo(a, b)
}

// rowFMA writes dotFMA(row, buf[k·down:]) to out[k·up] for k < 3·groups.
//
//go:noescape
func rowFMA(out, row, buf *float32, taps, groups, down, up int)

// dotRow writes dot(row, buf[k·down:]) to out[k·up] for k < 3·groups.
func dotRow(out, row, buf []float32, groups, down, up int) {
	if !hasFMA {
		dotRowGo(out, row, buf, groups, down, up)
		return
	}
	_, _ = out[(3*groups-1)*up], buf[(3*groups-1)*down+len(row)-1]
	rowFMA(&out[0], &row[0], &buf[0], len(row), groups, down, up)
}

//go:noescape
func clampAVX2(dst *float32, src unsafe.Pointer, n int) int

//go:noescape
func stereoSumsAVX2(out *[5]float64, block *float32, n int)

//go:noescape
func mixStereoAVX2(mono, block *float32, n int, left, right float32)

// clampFinite writes the samples at src through clamp to dst and returns the
// number of samples written. It leaves the last samples to the caller, and all
// samples from the first NaN or infinite one on.
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
