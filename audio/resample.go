package audio

import (
	"fmt"
	"math"
	"math/big"
	"slices"
)

// The resampler's filter is a sinc with a Kaiser window. The stop band begins
// at the lower of the two Nyquist frequencies, so nothing folds back. The pass
// band ends at 0.91 of it. Length and shape follow Kaiser's formulas (J. F.
// Kaiser, "Nonrecursive digital filter design using the I0-sinh window
// function", 1974): beta = 0.1102 (A − 8.7), taps = (A − 7.95) / (2.285 Δω).
const (
	stopBandDB    = 96.0
	passBand      = 0.91                                                     // fraction of the lower Nyquist frequency
	kaiserBeta    = 0.1102 * (stopBandDB - 8.7)                              //
	tapsAtLowRate = (stopBandDB - 7.95) / (2.285 * math.Pi * (1 - passBand)) // filter length in samples at the lower rate
	// Middle of the transition band, relative to the lower Nyquist frequency.
	cutOff = (1 + passBand) / 2
	// Coefficients (512 KiB); with more, phases are interpolated.
	maxTable = 1 << 17
	// Phases per sample at the lower rate, for an error below −115 dB.
	lerpPhases = 1 << 10
	maxRate    = 1 << 24 // Hz; keeps every product far from overflow
)

// Resampler changes the sample rate of one channel as a stream. The result does
// not depend on how the input is split. Output sample k is at input time
// k·from/to, so no delay needs to be compensated, and n input samples yield
// ⌈n·to/from⌉ output samples. It is not safe for concurrent use.
type Resampler struct {
	up, down int       // rates divided by their greatest common divisor: to, from
	taps     int       // per phase, a multiple of 8
	table    []float32 // phases × taps; one more row when interpolating
	lerp     int       // rows of the table to interpolate between, or 0 if each phase has one

	buf     []float32 // pending input; buf[0] is the first tap of the next output sample when skip is 0
	skip    int       // input samples to drop before the next output sample's first tap
	phase   int       // position between input samples, in 1/up
	in, out int64     // samples read and written so far
	flushed bool
}

// NewResampler returns a resampler between any two rates in Hz.
func NewResampler(from, to int) (*Resampler, error) {
	if from <= 0 || to <= 0 || from > maxRate || to > maxRate {
		return nil, fmt.Errorf("audio: resample from %d Hz to %d Hz: expected rates from 1 to %d Hz", from, to, maxRate)
	}
	ratio := big.NewRat(int64(from), int64(to))
	r := &Resampler{up: int(ratio.Denom().Int64()), down: int(ratio.Num().Int64())}
	if from == to {
		return r, nil
	}
	// The filter works at the lower rate; taps are counted at the input's rate.
	stretch := math.Max(1, float64(from)/float64(to))
	r.taps = (int(math.Ceil(tapsAtLowRate*stretch)) + 7) &^ 7
	phases := r.up
	if phases*r.taps > maxTable {
		phases = int(math.Ceil(lerpPhases / stretch))
		r.lerp = phases
	}
	rows := phases
	if r.lerp > 0 {
		rows++
	}
	r.table = make([]float32, rows*r.taps)
	row := make([]float64, r.taps)
	half := float64(r.taps) / 2
	fc := cutOff / stretch // fraction of the input's Nyquist frequency
	norm := 1 / bessel0(kaiserBeta)
	for p := range rows {
		sum := 0.0
		for m := range row {
			t := float64(p)/float64(phases) + half - 1 - float64(m)
			w := 0.0
			if u := t / half; u > -1 && u < 1 {
				w = bessel0(kaiserBeta*math.Sqrt(1-u*u)) * norm
			}
			sinc := 1.0
			if x := math.Pi * (fc * t); x != 0 {
				sinc = math.Sin(x) / x
			}
			row[m] = sinc * w
			sum += row[m]
		}
		for m, c := range row { // each phase passes a constant unchanged
			r.table[p*r.taps+m] = float32(c / sum)
		}
	}
	r.buf = make([]float32, r.taps/2-1, 4*r.taps+8192)
	return r, nil
}

// Process reads input samples and appends the completed output samples to dst.
func (r *Resampler) Process(dst, src []float32) []float32 {
	if r.taps == 0 {
		return append(dst, src...)
	}
	r.in += int64(len(src))
	for len(src) > 0 { // in pieces, so that the buffer stays in the cache for inputs of any length
		n := min(len(src), 8192)
		dst = r.run(dst, src[:n])
		src = src[n:]
	}
	return dst
}

// Flush appends the remaining output samples and ends the stream.
func (r *Resampler) Flush(dst []float32) []float32 {
	if r.taps == 0 || r.flushed {
		return dst
	}
	r.flushed = true
	want := (r.in*int64(r.up) + int64(r.down) - 1) / int64(r.down)
	owed := len(dst) + int(want-r.out)
	dst = r.run(dst, make([]float32, r.taps))
	return dst[:owed]
}

func (r *Resampler) run(dst, src []float32) []float32 {
	if r.skip >= len(src)+len(r.buf) {
		r.skip -= len(src) + len(r.buf)
		r.buf = r.buf[:0]
		return dst
	}
	r.buf = append(r.buf, src...)
	pos, phase, taps := r.skip, r.phase, r.taps
	step, rest := r.down/r.up, r.down%r.up
	before := len(dst)
	if r.lerp == 0 {
		dst = r.periods(dst, pos, phase)
		pos += (len(dst) - before) / r.up * r.down
	}
	for pos+taps <= len(r.buf) {
		window := r.buf[pos : pos+taps : pos+taps]
		var y float32
		if r.lerp > 0 {
			at := float64(phase) / float64(r.up) * float64(r.lerp)
			p := int(at)
			mu := float32(at - float64(p))
			y = dot(r.table[p*taps:(p+1)*taps], window)
			y += mu * (dot(r.table[(p+1)*taps:(p+2)*taps], window) - y)
		} else {
			y = dot(r.table[phase*taps:(phase+1)*taps], window)
		}
		dst = append(dst, y)
		pos += step
		if phase += rest; phase >= r.up {
			phase -= r.up
			pos++
		}
	}
	r.out += int64(len(dst) - before)
	r.phase = phase
	if pos >= len(r.buf) {
		r.skip, r.buf = pos-len(r.buf), r.buf[:0]
		return dst
	}
	r.skip = 0
	r.buf = r.buf[:copy(r.buf, r.buf[pos:])]
	return dst
}

// periods appends output samples in groups of three periods until the buffer,
// read from pos, is used up; phase is the phase of the first sample. A period
// is up output samples, or down input samples, after which the phases repeat:
// three samples, one from each period, share a row of the table.
func (r *Resampler) periods(dst []float32, pos, phase int) []float32 {
	// The last of n·up is ((n·up−1)·down + phase)/up input samples on.
	n := 0
	if room := len(r.buf) - pos - r.taps + 1; room > 0 {
		n = ((room*r.up-1-phase)/r.down + 1) / (3 * r.up)
	}
	if n <= 0 {
		return dst
	}
	before := len(dst)
	dst = slices.Grow(dst, 3*n*r.up)[:before+3*n*r.up]
	for i := range r.up {
		row := r.table[phase*r.taps:][:r.taps]
		dotRow(dst[before+i:], row, r.buf[pos:], n, r.down, r.up)
		phase += r.down
		pos += phase / r.up
		phase %= r.up
	}
	return dst
}

// bessel0 is the modified Bessel function I0, as a power series.
func bessel0(x float64) float64 {
	sum, term, q := 1.0, 1.0, x*x/4
	for k := 1.0; term > sum*1e-17; k++ {
		term *= q / (k * k)
		sum += term
	}
	return sum
}
