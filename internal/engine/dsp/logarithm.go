package dsp

import "math"

// ln is the natural logarithm of a positive normal float32, to about one unit
// in the last place: the polynomial of Cephes' logf (S. L. Moshier, Methods and
// Programs for Mathematical Functions), three times as fast as math.Log.
func ln(x float32) float32 {
	b := math.Float32bits(x)
	e := int32(b>>23) - 126
	m := math.Float32frombits(b&0x007fffff | 0x3f000000) // [0.5, 1)
	if m < math.Sqrt2/2 {
		e--
		m += m
	}
	m--
	z := m * m
	p := float32(7.0376836292e-2)
	p = p*m - 1.1514610310e-1
	p = p*m + 1.1676998740e-1
	p = p*m - 1.2420140846e-1
	p = p*m + 1.4249322787e-1
	p = p*m - 1.6668057665e-1
	p = p*m + 2.0000714765e-1
	p = p*m - 2.4999993993e-1
	p = p*m + 3.3333331174e-1
	f := float32(e)
	y := m*z*p - 2.12194440e-4*f - 0.5*z
	return m + y + 0.693359375*f
}
