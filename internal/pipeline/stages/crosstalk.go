package stages

import (
	"context"

	"gonum.org/v1/gonum/floats"

	"github.com/otograph/otograph/audio"
)

// The sound in a channel comes from another channel if it is softer and follows
// it. Both are compared in frames of 0.1 s at a quarter of the sample rate: the
// range below 2 kHz holds enough of a voice.
const (
	bleedFrame  = audio.SampleRate / 10
	bleedHop    = bleedFrame / 2
	bleedRate   = 4                                  // samples that become one
	bleedDelay  = audio.SampleRate / 100 / bleedRate // delay between channels: 10 ms
	bleedFollow = 0.5                                // share of the power that follows
	leastOwn    = 3 * audio.SampleRate / 10          // of speech between bleed
	leastBleed  = audio.SampleRate / 5               // between speech
)

// ownSpeech returns a channel's speech that comes from no other channel.
func ownSpeech(ctx context.Context, channels []*audio.PCM, c int, speech []audio.Span) (list []audio.Span, err error) {
	for _, s := range speech {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var parts []part
		for at := s.Start; at < s.End; at += bleedHop {
			foreign := false
			for other := range channels {
				foreign = foreign || other != c && follows(channels, c, other, at+(bleedHop-bleedFrame)/2)
			}
			end := min(at+bleedHop, s.End)
			if n := len(parts); n > 0 && parts[n-1].foreign == foreign {
				parts[n-1].End = end
			} else {
				parts = append(parts, part{audio.Span{Start: at, End: end}, foreign})
			}
		}
		parts = absorb(parts, true, leastBleed)
		parts = absorb(parts, false, leastOwn)
		for _, p := range parts {
			if !p.foreign {
				list = append(list, p.Span)
			}
		}
	}
	return list, nil
}

// part is a part of a stretch of speech: the channel's own, or foreign.
type part struct {
	audio.Span
	foreign bool
}

// absorb merges parts of one kind shorter than least into their neighbors.
func absorb(parts []part, foreign bool, least int) (out []part) {
	for _, p := range parts {
		if p.foreign == foreign && p.Len() < least && len(parts) > 1 {
			p.foreign = !foreign
		}
		if n := len(out); n > 0 && out[n-1].foreign == p.foreign {
			out[n-1].End = p.End
			continue
		}
		out = append(out, p)
	}
	return out
}

// follows reports whether the sound of channel c, from a sample on, comes from
// another one. The first of two equally loud channels is not an echo.
func follows(channels []*audio.PCM, c, other, from int) bool {
	mine, theirs := energy(channels[c], from), energy(channels[other], from)
	if mine > theirs || mine == theirs && c < other {
		return false
	}
	a := coarser(channels[c].Samples(from, from+bleedFrame))
	b := coarser(channels[other].Samples(from-bleedDelay*bleedRate, from+bleedFrame+bleedDelay*bleedRate))
	var power float64
	for _, x := range a {
		power += x * x
	}
	if power == 0 {
		return true // silence beside a sound
	}
	for lag := 0; lag+len(a) <= len(b); lag++ {
		var product, other float64
		for i, y := range b[lag : lag+len(a)] {
			product += a[i] * y
			other += y * y
		}
		if product*product >= bleedFollow*power*other && other > 0 {
			return true
		}
	}
	return false
}

// energy returns the energy of a frame.
func energy(p *audio.PCM, from int) (sum float64) {
	for _, x := range p.Samples(from, from+bleedFrame) {
		sum += float64(x) * float64(x)
	}
	return sum
}

// coarser returns the samples at a quarter of their rate, without their mean.
func coarser(samples []float32) []float64 {
	out := make([]float64, len(samples)/bleedRate)
	mean := 0.0
	for i := range out {
		for _, x := range samples[i*bleedRate : (i+1)*bleedRate] {
			out[i] += float64(x)
		}
		mean += out[i] / float64(len(out))
	}
	for i := range out {
		out[i] -= mean
	}
	return out
}

// Channels hold different voices if in most frames with sound one is much
// louder than every other, and if more than one is the loudest at times.
const (
	differLouder = 10.0              // times the power: 10 dB
	differMost   = 0.6               // of the frames with sound
	differEach   = 0.05              // of the frames with sound, for each of two channels
	differSilent = 1e-6 * bleedFrame // energy of a frame without sound: −60 dBFS
)

// ChannelsDiffer reports whether channels hold different voices.
func ChannelsDiffer(list []*audio.PCM) bool {
	if len(list) < 2 {
		return false
	}
	levels, loudest := make([]float64, len(list)), make([]int, len(list)) // energies; frames
	sounding, clear := 0, 0
	for from := 0; from < list[0].Len(); from += bleedFrame {
		for i, c := range list {
			levels[i] = energy(c, from)
		}
		best := floats.MaxIdx(levels)
		first := levels[best]
		if first < differSilent {
			continue
		}
		sounding++
		if levels[best] = 0; first >= differLouder*floats.Max(levels) {
			clear++
			loudest[best]++
		}
	}
	voices := 0
	for _, n := range loudest {
		if float64(n) >= differEach*float64(sounding) && n > 0 {
			voices++
		}
	}
	return voices > 1 && float64(clear) >= differMost*float64(sounding)
}
