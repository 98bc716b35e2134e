//go:build !amd64

package audio

// dot returns the sum of a[i]·b[i]; both have the same length, a positive
// multiple of 8.
func dot(a, b []float32) float32 { return dotGo(a, b) }
