package audio

// dotGo is dot in plain Go; eight independent sums hide the additions' latency.
func dotGo(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}

// dotRowGo is dotRow in plain Go.
func dotRowGo(out, row, buf []float32, groups, down, up int) {
	for k := range 3 * groups {
		out[k*up] = dotGo(row, buf[k*down:][:len(row)])
	}
}
