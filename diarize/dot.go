package diarize

// dot1 returns the dot product of two vectors of equal length.
func dot1(a, b []float32) float32 {
	b = b[:len(a)]
	var s float32
	for k, x := range a {
		s += x * b[k]
	}
	return s
}

// dot2x4Go is dot2x4 without vector instructions: two by two rows per pass keep
// the loaded values in registers.
func dot2x4Go(out *[8]float32, a0, a1, b0, b1, b2, b3 []float32) {
	out[0], out[1], out[4], out[5] = dot2x2(a0, a1, b0, b1)
	out[2], out[3], out[6], out[7] = dot2x2(a0, a1, b2, b3)
}

// dot2x2 multiplies each of a0, a1 with each of b0, b1.
func dot2x2(a0, a1, b0, b1 []float32) (s00, s01, s10, s11 float32) {
	n := len(a0)
	a1, b0, b1 = a1[:n], b0[:n], b1[:n]
	for k, x := range a0 {
		y, u, v := a1[k], b0[k], b1[k]
		s00 += x * u
		s01 += x * v
		s10 += y * u
		s11 += y * v
	}
	return s00, s01, s10, s11
}
