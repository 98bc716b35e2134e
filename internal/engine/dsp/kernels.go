package dsp

// bandSumsGo sums weights[i]·power[i] of one triangle for each lane.
func bandSumsGo(dst *[lanes]float32, weights, power []float32) {
	var a [lanes]float32
	for i, w := range weights {
		p := (*[lanes]float32)(power[i*lanes:])
		for j := range a {
			a[j] += w * p[j]
		}
	}
	*dst = a
}
