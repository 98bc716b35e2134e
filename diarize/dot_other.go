//go:build !amd64

package diarize

// dot2x4 multiplies each of a0, a1 with each of b0 … b3, all of equal length:
// out[0:4] are a0's products, out[4:8] a1's.
func dot2x4(out *[8]float32, a0, a1, b0, b1, b2, b3 []float32) { dot2x4Go(out, a0, a1, b0, b1, b2, b3) }
