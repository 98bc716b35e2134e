package audio

import (
	"math"
	"slices"
)

// RisingLevel is Leveled for sound that still grows: a gain that raises quiet
// passages only, by the loudest half second of the last ten seconds. It falls
// immediately and rises within one call. It is not safe for concurrent use.
type RisingLevel struct {
	window   int       // samples of a call
	energies []float64 // of the last half second, by call
	tops     []float64 // the greatest energies of half a second, by call
	calls    int
	gain     float32
}

// firstLevel is the assumed loudness (−40 dB) of the sound before the first
// sample. Without it, noise before it would be as loud as speech.
const firstLevel = 0.01

// NewRisingLevel returns a gain for windows of the given number of samples.
func NewRisingLevel(window int) *RisingLevel {
	l := &RisingLevel{window: window, gain: 1}
	l.energies = make([]float64, (levelHop*levelHops+window-1)/window)
	l.tops = slices.Repeat([]float64{firstLevel * firstLevel * float64(window*len(l.energies))}, levelReach*SampleRate/window)
	return l
}

// Raise appends the next window with its gain to dst, limited to full scale.
func (l *RisingLevel) Raise(dst, window []float32) []float32 {
	energy := 0.0
	for _, x := range window {
		energy += float64(x) * float64(x)
	}
	l.energies[l.calls%len(l.energies)] = energy
	sum := 0.0
	for _, e := range l.energies {
		sum += e
	}
	l.tops[l.calls%len(l.tops)] = sum
	l.calls++
	root := math.Sqrt(float64(l.window*len(l.energies)) / max(slices.Max(l.tops), math.SmallestNonzeroFloat32))
	gain := float32(min(max(leveledAt*root, 1), mostGain))
	before := min(l.gain, gain)
	l.gain = gain
	slope := (gain - before) / float32(l.window)
	for i, x := range window {
		dst = append(dst, min(max(x*(before+slope*float32(i)), -1), 1))
	}
	return dst
}
