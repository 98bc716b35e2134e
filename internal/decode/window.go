package decode

import (
	"math"

	"github.com/otograph/otograph/audio"
)

// Window is a stretch of sound for one decode: pieces of the file in order, with
// long silences between them shortened.
type Window struct {
	// Pieces are the stretches of the file that make up the window, in order and
	// not overlapping (samples at 16 kHz). Two pieces follow each other in the
	// window without anything between them.
	Pieces []audio.Span
	// Speech is the speech in the window, as samples of the file.
	Speech []audio.Span
}

// PackOptions sets how Pack fills windows. The zero value means the defaults
// that are named at each field.
type PackOptions struct {
	// Max is the longest window in seconds, the padding included; default 30.
	Max float64
	// MaxGap is the longest silence kept between two stretches of speech, in
	// seconds; default 0.5. Of a longer one the middle is left out.
	MaxGap float64
	// Lead and Tail are how much of the file's own sound is kept before the first
	// and after the last speech, in seconds; default 0.2 and 0.5, negative for
	// none. They never reach into other speech.
	Lead, Tail float64
	// Cut weighs ending a window in a short pause against using more windows: a
	// cut in no pause at all costs Cut windows, one in a pause of FreeCut seconds
	// or longer nothing, and in proportion between. Default 0.4, with which ten minutes
	// of conversation take 17 windows of 30 s instead of the 20 with 3, at the same error
	// rate with the demo models (docs/performance.md); negative is none.
	Cut float64
	// FreeCut is the pause, in seconds, in which a window ends freely; default 0.8.
	FreeCut float64
}

// quietReach is how far, in seconds, before the limit the quietest point of a
// stretch of speech that fills more than a window is looked for.
const quietReach = 5.0

func (o PackOptions) withDefaults() PackOptions {
	def := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
		*v = max(*v, 0)
	}
	def(&o.Max, 30)
	def(&o.MaxGap, 0.5)
	def(&o.Lead, 0.2)
	def(&o.Tail, 0.5)
	def(&o.Cut, 0.4)
	def(&o.FreeCut, 0.8)
	o.Max = max(o.Max, 1)
	o.Lead, o.Tail = min(o.Lead, o.Max/8), min(o.Tail, o.Max/8)
	return o
}

// Pack distributes speech (in order, not overlapping, samples at 16 kHz) over
// windows of at most opt.Max seconds. Windows end in silence; only a stretch of
// speech longer than a window is cut, at the quietest point of the last five
// seconds before the limit. Among all ways to do so it takes the one with the
// fewest windows and the fewest cuts in short pauses (see PackOptions.Cut), found
// by dynamic programming, so the same input always gives the same windows.
func Pack(speech []audio.Span, pcm *audio.PCM, opt PackOptions) []Window {
	opt = opt.withDefaults()
	samples := func(seconds float64) int { return int(math.Round(seconds * audio.SampleRate)) }
	limit, gap, lead, tail := samples(opt.Max), samples(opt.MaxGap), samples(opt.Lead), samples(opt.Tail)
	room := limit - lead - tail // for speech and the pauses in it

	var units []audio.Span
	for _, s := range speech {
		s.Start, s.End = max(s.Start, 0), min(s.End, pcm.Len())
		for s.Len() > room {
			at := quietest(pcm, s.Start+max(room-samples(quietReach), room/2), s.Start+room)
			units = append(units, audio.Span{Start: s.Start, End: at})
			s.Start = at
		}
		if s.Len() > 0 {
			units = append(units, s)
		}
	}
	n := len(units)
	if n == 0 {
		return nil
	}

	// cost[j] is the least cost of packing the first j units, from[j] where the
	// last of those windows begins.
	cost, from := make([]float64, n+1), make([]int, n+1)
	for j := 1; j <= n; j++ {
		cost[j] = math.Inf(1)
		length := 0
		for i := j - 1; i >= 0; i-- {
			length += units[i].Len()
			if i < j-1 {
				length += min(units[i+1].Start-units[i].End, gap)
			}
			if length > room && i < j-1 {
				break
			}
			c := cost[i] + 1
			if i > 0 {
				pause := float64(units[i].Start-units[i-1].End) / audio.SampleRate
				c += opt.Cut * max(0, 1-pause/opt.FreeCut)
			}
			if c < cost[j] {
				cost[j], from[j] = c, i
			}
		}
	}
	var borders []int
	for j := n; j > 0; j = from[j] {
		borders = append(borders, j)
	}
	windows := make([]Window, 0, len(borders))
	i := 0
	for k := len(borders) - 1; k >= 0; k-- {
		j := borders[k]
		before, after := 0, pcm.Len()
		if i > 0 {
			before = units[i-1].End
		}
		if j < n {
			after = units[j].Start
		}
		windows = append(windows, join(units[i:j], gap, max(units[i].Start-lead, before), min(units[j-1].End+tail, after)))
		i = j
	}
	return windows
}

// join makes one window of the units, which reaches from start to end and keeps
// at most gap samples between two of them.
func join(units []audio.Span, gap, start, end int) Window {
	w := Window{Speech: append([]audio.Span(nil), units...)}
	piece := audio.Span{Start: start}
	for i := 1; i < len(units); i++ {
		if silence := units[i].Start - units[i-1].End; silence > gap {
			piece.End = units[i-1].End + gap/2
			w.Pieces = append(w.Pieces, piece)
			piece = audio.Span{Start: units[i].Start - (gap - gap/2)}
		}
	}
	piece.End = end
	w.Pieces = append(w.Pieces, piece)
	return w
}

// quietest returns the middle of the quietest 60 ms between two samples, in steps
// of 10 ms; the latest of equals.
func quietest(pcm *audio.PCM, from, to int) int {
	const hop, frame = audio.SampleRate / 100, 6
	x := pcm.Samples(from, to)
	if len(x) < hop*frame {
		return to
	}
	energy := make([]float64, len(x)/hop)
	for i := range energy {
		for _, v := range x[i*hop : (i+1)*hop] {
			energy[i] += float64(v) * float64(v)
		}
	}
	best, at := math.Inf(1), 0
	for i := 0; i+frame <= len(energy); i++ {
		var sum float64
		for _, e := range energy[i : i+frame] {
			sum += e
		}
		if sum <= best {
			best, at = sum, i
		}
	}
	return from + at*hop + frame*hop/2
}

// Len returns the window's length in samples.
func (w Window) Len() int {
	n := 0
	for _, p := range w.Pieces {
		n += p.Len()
	}
	return n
}

// SpeechSeconds returns how much speech the window holds, in seconds.
func (w Window) SpeechSeconds() float64 {
	n := 0
	for _, s := range w.Speech {
		n += s.Len()
	}
	return float64(n) / audio.SampleRate
}

// Samples appends the window's sound to dst and returns it.
func (w Window) Samples(dst []float32, pcm *audio.PCM) []float32 {
	for _, p := range w.Pieces {
		dst = append(dst, pcm.Samples(p.Start, p.End)...)
	}
	return dst
}

// Time maps seconds from the beginning of the window to seconds from the
// beginning of the file. Times outside the window give its borders. Where two
// pieces meet, the time is the end of the earlier one.
func (w Window) Time(t float64) float64 {
	at := t * audio.SampleRate
	for i, p := range w.Pieces {
		length := float64(p.Len())
		if at <= length || i == len(w.Pieces)-1 {
			return (float64(p.Start) + min(max(at, 0), length)) / audio.SampleRate
		}
		at -= length
	}
	return 0
}

// Rest returns the part of the window after the given time of the file (seconds):
// the same pieces and speech, cut at that time. Its Speech is empty when none is
// left.
func (w Window) Rest(after float64) Window {
	at := int(math.Round(after * audio.SampleRate))
	var r Window
	for _, p := range w.Pieces {
		if p.End > at {
			r.Pieces = append(r.Pieces, audio.Span{Start: max(p.Start, at), End: p.End})
		}
	}
	for _, s := range w.Speech {
		if s.End > at {
			r.Speech = append(r.Speech, audio.Span{Start: max(s.Start, at), End: s.End})
		}
	}
	return r
}

// Part returns the part of the window between two times of the file (seconds), as Rest
// does, and the sample of the window at which it begins.
func (w Window) Part(from, to float64) (part Window, at int) {
	part = w.Rest(from)
	at = w.Len() - part.Len()
	end := int(math.Round(to * audio.SampleRate))
	cut := func(spans []audio.Span) (kept []audio.Span) {
		for _, s := range spans {
			if s.End = min(s.End, end); s.End > s.Start {
				kept = append(kept, s)
			}
		}
		return kept
	}
	part.Pieces, part.Speech = cut(part.Pieces), cut(part.Speech)
	return part, at
}
