package audio

import "math"

// peaksPerSecond is the number of waveform peaks per second.
const peaksPerSecond = 50

// Peaks returns the waveform of a recording, including its gaps (see Timeline):
// one byte per fiftieth of a second, including the last partial one. Each byte
// is the magnitude of the loudest sample, where 255 is the loudest of the whole
// recording. Digital silence yields zeros. Five hours take 900,000 bytes and
// about as long as reading the samples once.
func (p *PCM) Peaks() []byte {
	const each = SampleRate / peaksPerSecond
	loudest := float32(0)
	length := p.timeline.End(p.Duration())
	magnitudes := make([]float32, int(math.Ceil(length*peaksPerSecond-1e-6)))
	for at := 0; at < p.Len(); at += each {
		i := int(p.timeline.Start(float64(at)/SampleRate)*peaksPerSecond + 1e-6)
		i = min(i, len(magnitudes)-1)
		for _, s := range p.Samples(at, at+each) {
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
