package audio

import "math"

// PeaksPerSecond is how many peaks of a waveform stand for a second.
const PeaksPerSecond = 50

// Peaks returns the waveform of a recording, a byte for each fiftieth of a second,
// the last one begun included: the magnitude of its loudest sample, 255 being the
// loudest of the whole recording. Digital silence has zeros. Five hours are 900,000
// bytes, which take about as long as reading the samples once.
func (p *PCM) Peaks() []byte {
	const each = SampleRate / PeaksPerSecond
	loudest := float32(0)
	magnitudes := make([]float32, (p.Len()+each-1)/each)
	for i := range magnitudes {
		for _, s := range p.Samples(i*each, (i+1)*each) {
			magnitudes[i] = max(magnitudes[i], s, -s)
		}
		loudest = max(loudest, magnitudes[i])
	}
	peaks := make([]byte, len(magnitudes))
	if loudest > 0 {
		for i, m := range magnitudes {
			peaks[i] = byte(math.Round(float64(m / loudest * 255)))
		}
	}
	return peaks
}
