package dsp

// bandSumsGo adds weights[i]·power[i] for one triangle over lanes interleaved
// frames.
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
