package stages

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
)

// A channel repeats another one where a line, a room or a loudspeaker carries
// the other's sound into it: softer, later and with reverberation. The powers
// of mel bands (natural logarithms, in frames of 10 ms) show such an echo even
// if the waveforms do not. Each block has one delay for a pair of channels,
// where they correlate most, and one gain for each band. The limits were chosen
// on mixtures of half of the people; docs/measurements/speakers.md has the
// errors on the other half.
const (
	echoShift     = audio.SampleRate / 100 // samples of a frame
	echoBlock     = 120 * 100              // frames, at most
	echoBands     = 16
	echoDelays    = 51   // frames, 0 to 0.5 s
	echoDecay     = 0.23 // of reverberation, per frame: 60 dB in 0.6 s
	echoFrames    = 100  // least number in which the other channel has sound
	echoStep      = 3    // frames between those that are correlated
	echoFits      = 0.2  // least correlation: 0.4 to 0.9 with an echo, 0.05 without
	echoQuantile  = 0.4  // quantile of the ratios of a band: greater ratios contain own voices
	echoExcess    = 0.9  // least mean excess of an own voice over the echo: 3.9 dB
	echoSmooth    = 5    // frames on each side whose excess is averaged
	otherSound    = 3.0  // least power above the noise, 13 dB
	ownSound      = 1.4  // the same for the other channel's own sound: 6 dB
	noiseShare    = 0.1  // of a band's frames at or below the noise
	leastOwn      = 30 * echoShift
	leastRepeated = 20 * echoShift
)

// powers holds the power of each band in a frame.
type powers = [echoBands]float32

// sounding is a block of a channel.
type sounding struct {
	frames, decaying []powers // without and with the reverberation of a room
	noise            powers
	echo             []bool // frames with no more than another channel's sound and the noise
}

// echoes removes from each channel's speech the stretches in which the channel
// repeats another one, and returns these stretches.
func echoes(ctx context.Context, channels []*audio.PCM, sides []Side) (repeated []audio.Span) {
	fbank := dsp.NewFbank(dsp.FbankOptions{Bands: echoBands, Window: dsp.WindowHamming, Scale: 1 << 15})
	found := make([][]bool, len(channels)) // by frame
	frames := fbank.Frames(channels[0].Len())
	size := frames/(frames/echoBlock+1) + 1 // equal blocks: a short last one would not show its delay
	for from := 0; from < frames && ctx.Err() == nil; from += size {
		before := min(from, echoDelays)
		block := make([]sounding, len(channels))
		for c, pcm := range channels {
			block[c] = soundingOf(fbank, pcm.Samples((from-before)*echoShift, min((from+size)*echoShift, pcm.Len())))
		}
		for c, own := range slices.Backward(block) { // backward, so that of equal channels the first one stays
			for other := range block {
				if other != c {
					own.mark(block[other])
				}
			}
			found[c] = append(found[c], own.echo[min(before, len(own.echo)):]...)
		}
	}
	for c, s := range sides {
		s.Speech.Spans, repeated = divide(s.Speech.Spans, found[c], repeated)
	}
	return repeated
}

func soundingOf(fbank *dsp.Extractor, samples []float32) (s sounding) {
	flat := make([]float32, fbank.Frames(len(samples))*echoBands)
	fbank.Compute(flat, samples)
	for row := range slices.Chunk(flat, echoBands) {
		s.frames = append(s.frames, powers(row))
	}
	s.noise, s.decaying, s.echo = quantiles(s.frames, noiseShare), slices.Clone(s.frames), make([]bool, len(s.frames))
	for t := 1; t < len(s.decaying); t++ {
		for k, p := range s.decaying[t-1] {
			s.decaying[t][k] = max(s.decaying[t][k], p-echoDecay)
		}
	}
	return s
}

// quantiles returns the power of each band that a share of frames doesn't exceed.
func quantiles(frames []powers, share float64) (out powers) {
	band := make([]float32, len(frames))
	for k := range out {
		for t := range frames {
			band[t] = frames[t][k]
		}
		if slices.Sort(band); len(band) > 0 {
			out[k] = band[int(share*float64(len(band)-1))]
		}
	}
	return out
}

// pairs yields every step-th frame with the frame of another channel that is a
// delay earlier, if the other channel then has its own sound in most bands and
// is louder.
func (s sounding) pairs(other sounding, delay, step int, yield func(own, theirs *powers)) {
	for t := delay; t < len(s.frames); t += step {
		own, theirs := &s.frames[t], &other.decaying[t-delay]
		bands, louder := 0, float32(0)
		for k, p := range theirs {
			louder += p - own[k]
			if p > other.noise[k]+otherSound {
				bands++
			}
		}
		if bands >= echoBands/2 && louder > 0 && !other.echo[t-delay] {
			yield(own, theirs)
		}
	}
}

// delay returns the delay, in frames, with which s repeats another channel; all
// frames if it does not.
func (s sounding) delay(other sounding) int {
	delay, best := len(s.frames), echoFits
	for d := range echoDelays {
		var n, product, ours, theirs float64
		var x, y, xx, yy, xy [echoBands]float64
		s.pairs(other, d, echoStep, func(own, sound *powers) {
			n++
			for k := range own {
				p, q := float64(own[k]), float64(sound[k])
				x[k], y[k], xx[k], yy[k], xy[k] = x[k]+p, y[k]+q, xx[k]+p*p, yy[k]+q*q, xy[k]+p*q
			}
		})
		for k := range x {
			product += xy[k] - x[k]*y[k]/n
			ours += xx[k] - x[k]*x[k]/n
			theirs += yy[k] - y[k]*y[k]/n
		}
		if c := product / math.Sqrt(ours*theirs); n*echoStep >= echoFrames && c >= best {
			delay, best = d, c
		}
	}
	return delay
}

// mark finds the echo of another channel. A frame without sound counts as the
// frame before.
func (s sounding) mark(other sounding) {
	delay := s.delay(other)
	var ratios []powers
	s.pairs(other, delay, 1, func(own, sound *powers) {
		r := *own
		for k, p := range sound {
			r[k] -= p
		}
		ratios = append(ratios, r)
	})
	gain := quantiles(ratios, echoQuantile)
	excess, count := make([]float64, len(s.echo)), make([]float64, len(s.echo))
	for t := delay; t < len(s.echo); t++ {
		for k, p := range s.frames[t] {
			if p > s.noise[k]+ownSound {
				echo := math.Log(math.Exp(float64(other.decaying[t-delay][k]+gain[k])) + math.Exp(float64(s.noise[k])))
				excess[t] += min(max(float64(p)-echo, -otherSound), otherSound)
				count[t]++
			}
		}
	}
	last := false
	for t := range s.echo {
		from, to := max(t-echoSmooth, 0), min(t+echoSmooth+1, len(s.echo))
		if n := floats.Sum(count[from:to]); n > 0 {
			last = floats.Sum(excess[from:to]) < echoExcess*n
		}
		s.echo[t] = s.echo[t] || last
	}
}

// divide returns the stretches of a channel's own speech, and adds to repeated
// the stretches in which it repeats another channel.
func divide(speech []audio.Span, echo []bool, repeated []audio.Span) (own, all []audio.Span) {
	for _, s := range speech {
		var parts []part
		for at := s.Start; at < s.End; at = parts[len(parts)-1].End {
			frame := at / echoShift
			parts = append(parts, part{audio.Span{Start: at, End: min((frame+1)*echoShift, s.End)}, frame < len(echo) && echo[frame]})
		}
		for _, p := range absorb(absorb(absorb(parts, true, 0), true, leastRepeated), false, leastOwn) {
			if p.repeated {
				repeated = append(repeated, p.Span)
			} else {
				own = append(own, p.Span)
			}
		}
	}
	return own, repeated
}

// part is a part of a stretch of speech.
type part struct {
	audio.Span
	repeated bool
}

// absorb changes the kind of parts (repeated or not) shorter than least, and
// then joins neighbors of one kind.
func absorb(parts []part, repeated bool, least int) (out []part) {
	for _, p := range parts {
		if p.repeated == repeated && p.Len() < least && len(parts) > 1 {
			p.repeated = !repeated
		}
		if n := len(out); n > 0 && out[n-1].repeated == p.repeated {
			out[n-1].End = p.End
			continue
		}
		out = append(out, p)
	}
	return out
}
