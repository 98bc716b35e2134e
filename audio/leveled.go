package audio

import (
	"math"
	"slices"
)

const (
	// The level is measured every levelHop samples, over half a second.
	levelHop, levelHops = SampleRate / 16, 8
	// levelReach is how far, in seconds, a gain looks in both directions.
	levelReach = 10
	// leveledAt is the target root mean square (−20 dB), mostGain is 50 dB.
	leveledAt, mostGain = 0.1, 316.0
)

// leveled is a recording with raised levels.
type leveled struct {
	of   *PCM
	gain []float32 // at each second, and at the end
}

// Leveled returns the recording with a slow gain that raises quiet passages and
// lowers nothing: it brings the loudest half second within ten seconds to −20
// dBFS, by at most 50 dB, and limits samples to full scale. The gain is applied
// on reading; the result is valid until p is closed. If the recording is loud
// enough everywhere, p itself is returned.
func (p *PCM) Leveled() *PCM {
	gain := gains(p)
	if !slices.ContainsFunc(gain, func(g float32) bool { return g > 1 }) {
		return p
	}
	return &PCM{samples: p.samples, first: p.first, info: p.info, timeline: p.timeline, leveled: &leveled{p, gain}}
}

// gains returns the gain at each second of a recording, and at its end.
func gains(p *PCM) []float32 {
	const second = SampleRate / levelHop
	loudest := make([]float64, p.Len()/SampleRate+2) // the greatest energy of half a second, by the second of its end
	var hops [levelHops]float64
	for i := 0; i*levelHop < p.Len(); i++ {
		energy := 0.0
		for _, x := range p.Samples(i*levelHop, (i+1)*levelHop) {
			energy += float64(x) * float64(x)
		}
		hops[i%levelHops] = energy
		sum := 0.0
		for _, e := range hops {
			sum += e
		}
		loudest[i/second] = max(loudest[i/second], sum)
	}
	list := make([]float32, len(loudest))
	for i := range list {
		top := slices.Max(loudest[max(0, i-levelReach):min(len(loudest), i+levelReach)])
		list[i] = float32(min(max(leveledAt*math.Sqrt(levelHop*levelHops/max(top, math.SmallestNonzeroFloat32)), 1), mostGain))
	}
	return list
}

// append appends the samples [from, to) with their gain.
func (l *leveled) append(dst []float32, from, to int) []float32 {
	for at := from; at < to; {
		second := at / SampleRate
		end := min(to, (second+1)*SampleRate)
		g := l.gain[second]
		slope := (l.gain[second+1] - g) / SampleRate
		for i, x := range l.of.Samples(at, end) {
			dst = append(dst, min(max(x*(g+slope*float32(at-second*SampleRate+i)), -1), 1))
		}
		at = end
	}
	return dst
}

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
