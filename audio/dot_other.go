//go:build !amd64

package audio

// dot returns the sum of a[i]·b[i]; both have the same length, a positive
// multiple of 8.
func dot(a, b []float32) float32 { return dotGo(a, b) }

// dot3 returns dot(a, b[k·stride:]) for k = 0, 1, 2.
func dot3(a, b []float32, stride int) [3]float32 { return dot3Go(a, b, stride) }
