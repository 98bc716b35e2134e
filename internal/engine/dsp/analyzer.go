package dsp

import (
	"fmt"
	"math"
	"sync"
)

// Every recipe has a frame each 10 ms at 16 kHz.
const (
	sampleRate = 16000
	frameShift = 160 // samples
)

// edge defines the samples outside the signal.
type edge int

const (
	edgeZero    edge = iota
	edgeMirror       // Kaldi: -1 → 0, -2 → 1, n → n-1
	edgeReflect      // torch, numpy: -1 → 1, -2 → 2, n → n-2
)

// compression is the function applied to a band's energy.
type compression int

const (
	compressLn    compression = iota // ln(max(e, floor))
	compressLnAdd                    // ln(e + floor)
	compressDB                       // 10·log10(max(e, floor))
)

// analyzer implements the steps that all front ends share: frames, window,
// transform, filter bank, compression. It computes eight frames in parallel.
type analyzer struct {
	offset      int // frame t covers samples [t·frameShift+offset, … + len(window))
	edge        edge
	window      []float32
	scale       float32 // multiplies the samples
	framePre    float32 // Kaldi: mean removed and pre-emphasis inside each frame; 0 for neither
	signalPre   float32 // NeMo: pre-emphasis over the whole signal
	magnitude   bool    // |X| instead of |X|²
	bands       []band
	compression compression
	floor       float32
	plan        *plan
	scratch     sync.Pool
}

type scratch struct {
	frame          []float32
	xr, xi, yr, yi []float32
	power          []float32
}

func (a *analyzer) init(fft int) {
	if fft < len(a.window) {
		panic(fmt.Sprintf("dsp: transform of %d samples for a window of %d", fft, len(a.window)))
	}
	a.plan = newPlan(fft)
	a.scratch.New = func() any {
		h := a.plan.half * lanes
		b := make([]float32, len(a.window)+4*h+h+lanes)
		s := &scratch{}
		s.xr, b = b[:h:h], b[h:]
		s.xi, b = b[:h:h], b[h:]
		s.yr, b = b[:h:h], b[h:]
		s.yi, b = b[:h:h], b[h:]
		s.power, b = b[:h+lanes:h+lanes], b[h+lanes:]
		s.frame = b
		return s
	}
}

// samples returns the len(window) samples from start on. They are a view if
// they lie inside the signal and need no pre-emphasis, else a copy in s.frame.
func (a *analyzer) samples(s *scratch, x []float32, start int) []float32 {
	n := len(a.window)
	if start >= 0 && start+n <= len(x) && a.signalPre == 0 {
		return x[start : start+n]
	}
	for i := range s.frame {
		j := start + i
		if j < 0 || j >= len(x) {
			if a.edge == edgeZero || len(x) == 0 {
				s.frame[i] = 0
				continue
			}
			j = a.edge.fold(j, len(x))
		}
		v := x[j]
		if a.signalPre != 0 && j > 0 {
			v -= a.signalPre * x[j-1]
		}
		s.frame[i] = v
	}
	return s.frame
}

// fold returns the sample inside the signal that stands for sample j.
func (e edge) fold(j, n int) int {
	if n == 1 {
		return 0
	}
	repeated := 0 // samples at the ends that are also mirrored
	if e == edgeMirror {
		repeated = 1
	}
	for j < 0 || j >= n {
		if j < 0 {
			j = -repeated - j
		} else {
			j = 2*n - 2 + repeated - j
		}
	}
	return j
}

// load puts one windowed frame into lane j, even samples real, odd imaginary.
func (a *analyzer) load(s *scratch, x []float32, start, j int) {
	f := a.samples(s, x, start)
	w := a.window[:len(f)]
	re, im := s.xr[j:], s.xi[j:]
	var mean, pre float32
	last := float32(0)
	if a.framePre != 0 {
		var s0, s1, s2, s3 float32
		i := 0
		for ; i+3 < len(f); i += 4 {
			s0, s1, s2, s3 = s0+f[i], s1+f[i+1], s2+f[i+2], s3+f[i+3]
		}
		for ; i < len(f); i++ {
			s0 += f[i]
		}
		mean, pre = (s0+s1+s2+s3)/float32(len(f)), a.framePre
		last = f[0] - mean
	}
	o := 0
	i := 0
	for ; i+1 < len(f); i += 2 {
		u, v := f[i]-mean, f[i+1]-mean
		re[o] = (u - pre*last) * w[i] * a.scale
		im[o] = (v - pre*u) * w[i+1] * a.scale
		last = v
		o += lanes
	}
	if i < len(f) {
		re[o] = (f[i] - mean - pre*last) * w[i] * a.scale
		im[o] = 0
		o += lanes
	}
	for ; o < len(s.xr)-j; o += lanes {
		re[o], im[o] = 0, 0
	}
}

// compute writes frames rows of len(bands) values to dst.
func (a *analyzer) compute(dst, x []float32, frames int) {
	s := a.scratch.Get().(*scratch)
	defer a.scratch.Put(s)
	nb := len(a.bands)
	dst = dst[:frames*nb]
	for t := 0; t < frames; t += lanes {
		group := min(lanes, frames-t)
		for j := range group {
			a.load(s, x, (t+j)*frameShift+a.offset, j)
		}
		for j := group; j < lanes; j++ {
			for o := j; o < len(s.xr); o += lanes {
				s.xr[o], s.xi[o] = 0, 0
			}
		}
		zr, zi := a.plan.complexForward(s.xr, s.xi, s.yr, s.yi)
		a.plan.power(s.power, zr, zi)
		if a.magnitude {
			for i, v := range s.power {
				s.power[i] = float32(math.Sqrt(float64(v)))
			}
		}
		var e [lanes]float32
		for b := range a.bands {
			bd := &a.bands[b]
			bandSums(&e, bd.weights, s.power[bd.first*lanes:])
			row := dst[t*nb+b:]
			switch a.compression {
			case compressLn:
				for j := range group {
					row[j*nb] = ln(max(e[j], a.floor))
				}
			case compressLnAdd:
				for j := range group {
					row[j*nb] = ln(e[j] + a.floor)
				}
			case compressDB:
				for j := range group {
					row[j*nb] = (10 / math.Ln10) * ln(max(e[j], a.floor))
				}
			}
		}
	}
}
