package dsp

import "math"

// band is one filter: weights over consecutive transform bins from first on.
type band struct {
	first   int
	weights []float32
}

func kaldiMel(hz float64) float64 { return 1127 * math.Log1p(hz/700) }

func htkMel(hz float64) float64 { return 2595 * math.Log10(1+hz/700) }
func htkHz(mel float64) float64 { return 700 * (math.Pow(10, mel/2595) - 1) }
func slaneyMel(h float64) float64 {
	if h < 1000 {
		return h * 3 / 200
	}
	return 15 + math.Log(h/1000)*27/math.Log(6.4)
}

func slaneyHz(m float64) float64 {
	if m < 15 {
		return m * 200 / 3
	}
	return 1000 * math.Exp((m-15)*math.Log(6.4)/27)
}

// sparse keeps the non-zero weights in each row of weight(band, bin).
func sparse(bands, bins int, weight func(band, bin int) float64) []band {
	out := make([]band, bands)
	for b := range out {
		for k := range bins {
			w := weight(b, k)
			if w <= 0 {
				continue
			}
			if out[b].weights == nil {
				out[b].first = k
			}
			for len(out[b].weights) < k-out[b].first {
				out[b].weights = append(out[b].weights, 0)
			}
			out[b].weights = append(out[b].weights, float32(w))
		}
	}
	return out
}

func triangle(x, left, centre, right float64) float64 {
	return max(0, min((x-left)/(centre-left), (right-x)/(right-centre)))
}

// kaldiBank returns triangles that are linear in mel, not normalized, without
// the Nyquist bin. skipDC leaves out bin 0, as TensorFlow does.
func kaldiBank(bands int, low, high float64, skipDC bool) []band {
	const fft = 512
	lo, hi := kaldiMel(low), kaldiMel(high)
	step := (hi - lo) / float64(bands+1)
	return sparse(bands, fft/2, func(b, k int) float64 {
		if k == 0 && skipDC {
			return 0
		}
		m := kaldiMel(float64(k) * sampleRate / fft)
		l := lo + float64(b)*step
		return triangle(m, l, l+step, l+2*step)
	})
}

// edgesBank returns triangles that are linear in Hz between edges, optionally
// divided by half their width (Slaney's area normalization).
func edgesBank(bands, fft int, edges []float64, area bool) []band {
	return sparse(bands, fft/2+1, func(b, k int) float64 {
		w := triangle(float64(k)*sampleRate/float64(fft), edges[b], edges[b+1], edges[b+2])
		if area {
			w *= 2 / (edges[b+2] - edges[b])
		}
		return w
	})
}

// melEdges returns the edges of bands from 0 to 8000 Hz, evenly spaced in mel.
func melEdges(bands int, toMel, toHz func(float64) float64) []float64 {
	e := make([]float64, bands+2)
	for i := range e {
		e[i] = toHz(toMel(sampleRate/2) * float64(i) / float64(bands+1))
	}
	return e
}

// SlaneyFilters returns the mel filters of librosa and of Whisper for a
// transform of fft samples at 16 kHz: Slaney scale and area, 0-8000 Hz, one row
// of fft/2 + 1 weights for each band.
func SlaneyFilters(bands, fft int) [][]float32 {
	rows := make([][]float32, bands)
	for i, b := range edgesBank(bands, fft, melEdges(bands, slaneyMel, slaneyHz), true) {
		rows[i] = make([]float32, fft/2+1)
		copy(rows[i][b.first:], b.weights)
	}
	return rows
}
