package audio

import (
	"math"
	"slices"
)

// Constants of the downmix, which decides block by block. The mean cancels if
// its energy is small compared with the mean of unrelated channels: the ratio
// is 0 for channels in antiphase, 1 for unrelated channels, N for N equal
// channels.
const (
	blocksPerSecond = 2
	cancelBelow     = 0.1  // 10 dB less than unrelated channels would have: the mean loses the signal
	cancelUntil     = 0.4  // from here on the mean is used again
	audible         = 1e-8 // least mean square of a channel with a signal, −80 dBFS
	fadesPerSecond  = 100  // a change of weights takes 10 ms
	maxBlock        = 1 << 20
)

// downmix mixes channels block by block, however the input is split.
type downmix struct {
	channels, fade int
	block          []float32 // interleaved; cap is the block's length
	weights        []float32 // weights at the end of the last block
	target         []float32
	sum            []float64 // per channel in the block
	square         []float64
	energy         []float64 // per channel since the beginning, without the DC offset
	audible        []bool    // channels that ever carried a signal
	single         int       // channel used alone while the mean cancels, else -1
	started        bool
	mono           []float32
	emit           func([]float32) error
}

func newDownmix(channels, rate int, emit func([]float32) error) *downmix {
	frames := max(1, min(rate/blocksPerSecond, maxBlock/channels))
	return &downmix{
		channels: channels, fade: max(1, rate/fadesPerSecond), block: make([]float32, 0, frames*channels),
		weights: make([]float32, channels), target: make([]float32, channels),
		sum: make([]float64, channels), square: make([]float64, channels), energy: make([]float64, channels), audible: make([]bool, channels), single: -1,
		mono: make([]float32, frames), emit: emit,
	}
}

// write takes interleaved samples, whole frames or not.
func (d *downmix) write(samples []float32) error {
	for len(samples) > 0 {
		n := min(len(samples), cap(d.block)-len(d.block))
		d.block = append(d.block, samples[:n]...)
		samples = samples[n:]
		if len(d.block) == cap(d.block) {
			if err := d.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush mixes the block that has been collected.
func (d *downmix) flush() error {
	frames := len(d.block) / d.channels
	if frames == 0 {
		return nil
	}
	block := d.block[:frames*d.channels]
	d.aim(block, frames)
	mono := d.mono[:frames]
	from := 0
	if d.started && !slices.Equal(d.weights, d.target) {
		from = min(d.fade, frames)
		for i := range from {
			t := float32(i) / float32(d.fade)
			var y float32
			for c, x := range block[i*d.channels : (i+1)*d.channels] {
				y += x * (d.weights[c] + t*(d.target[c]-d.weights[c]))
			}
			mono[i] = y
		}
	}
	mix(mono[from:], block[from*d.channels:], d.target)
	copy(d.weights, d.target)
	d.started = true
	d.block = d.block[:0]
	return d.emit(mono)
}

func mix(mono, block, w []float32) {
	if len(w) == 2 {
		mixStereo(mono, block, w[0], w[1])
		return
	}
	for i := range mono {
		var y float32
		for c, x := range block[i*len(w) : (i+1)*len(w)] {
			y += x * w[c]
		}
		mono[i] = y
	}
}

// aim sets the weights for a block.
func (d *downmix) aim(block []float32, frames int) {
	n := float64(frames)
	sum, square := d.sum, d.square
	clear(sum)
	clear(square)
	cross := 0.0 // the product of two channels
	if d.channels == 2 {
		sums := stereoSums(block)
		copy(sum, sums[:2])
		copy(square, sums[2:4])
		cross = sums[4]
	} else {
		for i := 0; i+d.channels <= len(block); i += d.channels {
			for c, x := range block[i : i+d.channels] {
				v := float64(x)
				sum[c] += v
				square[c] += v * v
			}
		}
	}
	total, loud, active := 0.0, 0, 0
	for c := range sum {
		e := math.Max(0, square[c]-sum[c]*sum[c]/n)
		d.energy[c] += e
		total += e
		if square[c] > audible*n {
			d.audible[c] = true
		}
		if d.audible[c] {
			active++
		}
		if d.energy[c] > d.energy[loud]*1.01 { // the first of equally loud channels, regardless of rounding
			loud = c
		}
	}
	for c := range d.target {
		d.target[c] = 0
		if active == 0 {
			d.target[c] = 1 / float32(d.channels)
		} else if d.audible[c] {
			d.target[c] = 1 / float32(active)
		}
	}
	if active > 1 && total > audible*n {
		var mixed float64 // energy of the mean
		if d.channels == 2 {
			mixed = (total + 2*(cross-sum[0]*sum[1]/n)) / 4
		} else {
			var s, q float64
			for i := 0; i+d.channels <= len(block); i += d.channels {
				y := 0.0
				for c, x := range block[i : i+d.channels] {
					y += float64(x * d.target[c])
				}
				s += y
				q += y * y
			}
			mixed = q - s*s/n
		}
		ratio := math.Max(0, mixed) * float64(active*active) / total
		switch {
		case d.single < 0 && ratio < cancelBelow:
			d.single = loud
		case d.single >= 0 && ratio > cancelUntil:
			d.single = -1
		case d.single >= 0 && d.energy[loud] > 2*d.energy[d.single]:
			d.single = loud
		}
	}
	if d.single >= 0 {
		clear(d.target)
		d.target[d.single] = 1
	}
}

// stereoSumsGo is stereoSums in plain Go, added to sums.
func stereoSumsGo(sums [5]float64, block []float32) [5]float64 {
	l, r, ll, rr, cross := sums[0], sums[1], sums[2], sums[3], sums[4]
	for ; len(block) >= 2; block = block[2:] {
		a, b := float64(block[0]), float64(block[1])
		l += a
		r += b
		ll += a * a
		rr += b * b
		cross += a * b
	}
	return [5]float64{l, r, ll, rr, cross}
}

// mixStereoGo is mixStereo in plain Go.
func mixStereoGo(mono, block []float32, left, right float32) {
	block = block[:2*len(mono)]
	for i := range mono {
		mono[i] = float32(left*block[2*i]) + float32(right*block[2*i+1])
	}
}
