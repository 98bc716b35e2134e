package audio

import "golang.org/x/sys/cpu"

// Every x86-64 server and desktop processor since 2015 has both, but the
// compiler may not assume it.
var hasFMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// dotFMA returns the sum of a[i]·b[i] for i < n, where n is a positive multiple
// of 8.
//
//go:noescape
func dotFMA(a, b *float32, n int) float32

// dot returns the sum of a[i]·b[i]; both have the same length, a positive
// multiple of 8.
func dot(a, b []float32) float32 {
	if hasFMA {
		b = b[:len(a)]
		return dotFMA(&a[0], &b[0], len(a))
	}
	return dotGo(a, b)
}

// dot3FMA writes the sums of a[i]·b[i+k·stride] for k = 0, 1, 2, each as dotFMA
// computes it.
//
//go:noescape
func dot3FMA(out, a, b *float32, n, stride int)

// dot3 returns dot(a, b[k·stride:]) for k = 0, 1, 2, with a read once.
func dot3(a, b []float32, stride int) (out [3]float32) {
	if !hasFMA {
		return dot3Go(a, b, stride)
	}
	b = b[:2*stride+len(a)]
	dot3FMA(&out[0], &a[0], &b[0], len(a), stride)
	return out
}
