//go:build cgo

package whispernet

import (
	"math"
	"slices"
)

// Whisper's features (Radford et al. 2022, section 2.2): power spectra of 25 ms
// every 10 ms, in bands of the mel scale.
const (
	fftSize, hop = 400, 160
	bins         = fftSize/2 + 1
)

// mel computes log-mel features. The Fourier transform is a product with its
// windowed matrix, which is as fast as an FFT at this size.
type mel struct {
	fourier, filters *matrix
	bands            int
}

// mel reads the filters of the file and computes the transform's matrix.
func (l *loader) mel() *mel {
	bands := int(l.file.Mels)
	m := &mel{bands: bands, fourier: l.matrix(kindFloat, fftSize, 2*bins), filters: l.matrix(kindFloat, bins, bands)}
	rows := allocate[float32](fftSize * 2 * bins)
	defer rows.free()
	var sin, cos [fftSize]float64
	for i := range fftSize {
		sin[i], cos[i] = math.Sincos(2 * math.Pi * float64(i) / fftSize)
	}
	for b := range bins {
		for i := range fftSize {
			window := 0.5 - 0.5*cos[i]
			rows.values[b*fftSize+i] = float32(window * cos[b*i%fftSize])
			rows.values[(bins+b)*fftSize+i] = float32(window * sin[b*i%fftSize])
		}
	}
	l.k.pack(m.fourier, 0, rows.bytes(), 0, panels(2*bins, l.k.panel()))
	filters := l.read(l.file.Filters, 4*int64(bands)*bins)
	defer filters.free()
	l.k.pack(m.filters, 0, filters.values, 0, panels(bands, l.k.panel()))
	return m
}

// features computes frames by bands for samples, followed by silence. Frames
// are centered: as in torch.stft, the sound is mirrored before its beginning.
func (m *Model) features(samples []float32, c *workerPool, out []float32) {
	all := len(out) / m.mel.bands
	samples = samples[:min(len(samples), all*hop)]
	padded := allocate[float32](all*hop + fftSize)
	defer padded.free()
	clear(padded.values)
	copy(padded.values[fftSize/2:], samples)
	for i := range fftSize / 2 {
		padded.values[fftSize/2-1-i] = padded.values[fftSize/2+1+i]
	}
	bands := m.mel.bands
	// frames without samples are all at the floor
	sounding := min((len(samples)+fftSize/2)/hop+1, all)
	const block = 100
	blocks := (sounding + block - 1) / block
	spectra := allocate[float32](c.threads * block * (2*bins + bins))
	defer spectra.free()
	c.each(blocks, func(part, worker int) {
		from, to := part*block, min(part*block+block, sounding)
		s := spectra.values[worker*block*3*bins:][:block*3*bins]
		complex, power := s[:block*2*bins], s[block*2*bins:]
		frames := operand{x: padded.values[from*hop:], stride: hop, m: to - from}
		m.multiply(m.mel.fourier, &frames, target{out: complex, stride: 2 * bins})
		for t := range to - from {
			re, im := complex[t*2*bins:][:bins], complex[t*2*bins+bins:][:bins]
			p := power[t*bins:][:bins]
			for b := range p {
				p[b] = re[b]*re[b] + im[b]*im[b]
			}
		}
		m.multiply(m.mel.filters, &operand{x: power, stride: bins, m: to - from}, target{out: out[from*bands:], stride: bands})
		for i, v := range out[from*bands : to*bands] {
			out[from*bands+i] = float32(math.Log10(max(float64(v), 1e-10)))
		}
	})
	for i := sounding * bands; i < len(out); i++ {
		out[i] = -10
	}
	top := slices.Max(out)
	for i, v := range out { // at most 8 decades below the largest
		out[i] = (max(v, top-8) + 4) / 4
	}
}
