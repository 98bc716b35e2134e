package decode

import (
	"cmp"
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
)

// Window is a stretch of sound for one decode: consecutive pieces of the file,
// with the long silences between them shortened.
type Window struct {
	// Pieces are the stretches of the file in the window, in order and without
	// overlap (samples at 16 kHz), one right after the other.
	Pieces []audio.Span
	// Speech is the speech in the window, in samples of the file.
	Speech []audio.Span
}

// PackOptions configures Pack. The zero value means the default of each field.
type PackOptions struct {
	// Max is a window's greatest length (s) with padding; default 30.
	Max float64
	// MaxGap is the longest silence kept between two stretches of speech, in
	// seconds; default 0.5. The middle of a longer one is removed.
	MaxGap float64
	// Lead and Tail are the durations of the file's sound kept before the first
	// and after the last speech, in seconds; default 0.2 and 0.5, negative for
	// none. They never extend into other speech.
	Lead, Tail float64
	// Cut weighs cuts in short pauses against more windows: a cut without a
	// pause costs Cut windows, a cut in a pause of FreeCut seconds or more
	// costs nothing, and the cost is linear between. With the default of 0.4,
	// ten minutes of conversation take 17 windows of 30 s instead of 20 with a
	// value of 3, at the same error rate with the demo models
	// (docs/measurements/standard-tier.md). Negative means no cost.
	Cut float64
	// FreeCut is the pause (s) where a window ends without cost; default 0.8.
	FreeCut float64
	// Opening, if positive, is the greatest length in seconds of a short first
	// window, whose text is early, if the speech fills more than four windows.
	// It ends at its longest pause after half of this length, or else at the
	// next pause.
	Opening float64
}

// quietReach is the range, in seconds before the limit, in which a stretch of
// speech longer than a window is cut at its quietest point.
const quietReach = 5.0

func (o PackOptions) withDefaults() PackOptions {
	def := func(v *float64, d float64) { *v = max(cmp.Or(*v, d), 0) }
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

// Pack distributes speech (in order, without overlap, samples at 16 kHz) over
// windows of at most opt.Max seconds. Windows end in silence; only a stretch of
// speech longer than a window is cut, at the quietest point of the last five
// seconds before the limit. Among all such divisions it selects the one with
// the lowest cost in windows and cuts in short pauses (see PackOptions.Cut) by
// dynamic programming, so that the same input always yields the same windows.
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

	first := 0 // number of units in a short first window
	if opt.Opening > 0 && Total(units) > 4*room {
		first = opening(units, gap, samples(opt.Opening), room)
	}
	// cost[j] is the minimum cost of packing the first j units; from[j] is the
	// first unit of the last of those windows.
	cost, from := make([]float64, n+1), make([]int, n+1)
	for j := first + 1; j <= n; j++ {
		cost[j] = math.Inf(1)
		length := 0
		for i := j - 1; i >= first; i-- {
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

// opening returns the number of units before the first of the longest pauses
// between half and all of the given samples, or else before the next one in room;
// 0 for none. It counts at most gap samples of a pause.
func opening(units []audio.Span, gap, most, room int) (first int) {
	length, longest := 0, 0
	for i := 1; i < len(units); i++ {
		length += units[i-1].Len()
		if length > room || length > most && first > 0 {
			break
		}
		pause := units[i].Start - units[i-1].End
		if length > most/2 && pause > longest {
			first, longest = i, pause
		}
		length += min(pause, gap)
	}
	return first
}

// Sample returns the windows to detect a language in: the first, middle and
// last window of the speech, as Pack divides it, or the first 30 s of the
// recording without speech.
func Sample(speech []audio.Span, pcm *audio.PCM, opt PackOptions) []Window {
	if len(speech) == 0 {
		speech = []audio.Span{{End: min(pcm.Len(), 30*audio.SampleRate)}}
	}
	windows := Pack(speech, pcm, opt)
	if n := len(windows); n > 3 {
		windows = []Window{windows[0], windows[n/2], windows[n-1]}
	}
	return windows
}

// join returns a window of the units from start to end that keeps at most gap
// samples between two of them.
func join(units []audio.Span, gap, start, end int) Window {
	w := Window{Speech: slices.Clone(units)}
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

// quietest returns the middle of the quietest 60 ms between two samples, in
// steps of 10 ms; of equally quiet places the last.
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
func (w Window) Len() int { return Total(w.Pieces) }

// SpeechSeconds returns the duration of the window's speech in seconds.
func (w Window) SpeechSeconds() float64 { return float64(Total(w.Speech)) / audio.SampleRate }

// Total returns the number of samples in spans.
func Total(spans []audio.Span) (samples int) {
	for _, s := range spans {
		samples += s.Len()
	}
	return samples
}

// Samples appends the window's sound to dst and returns it.
func (w Window) Samples(dst []float32, pcm *audio.PCM) []float32 {
	for _, p := range w.Pieces {
		dst = append(dst, pcm.Samples(p.Start, p.End)...)
	}
	return dst
}

// Spoken returns the window's speech in samples of the window.
func (w Window) Spoken() []audio.Span {
	spoken := make([]audio.Span, 0, len(w.Speech))
	at, k := 0, 0 // the start of piece k in the window
	for _, s := range w.Speech {
		for k < len(w.Pieces)-1 && w.Pieces[k].End <= s.Start {
			at += w.Pieces[k].Len()
			k++
		}
		first := at - w.Pieces[k].Start
		spoken = append(spoken, audio.Span{Start: s.Start + first, End: s.End + first})
	}
	return spoken
}

// Time converts seconds of the window to seconds of the file. A time outside
// yields the window's border, a time between pieces the end of the earlier.
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

// Rest returns the part of the window after a time of the file (seconds): the
// same pieces and speech, cut there. Its Speech may be empty.
func (w Window) Rest(after float64) Window { return w.Part(after, math.MaxInt32) }

// Part is Rest between two times of the file (seconds).
func (w Window) Part(from, to float64) Window {
	first, end := int(math.Round(from*audio.SampleRate)), int(math.Round(to*audio.SampleRate))
	cut := func(spans []audio.Span) (kept []audio.Span) {
		for _, s := range spans {
			if s.Start, s.End = max(s.Start, first), min(s.End, end); s.Start < s.End {
				kept = append(kept, s)
			}
		}
		return kept
	}
	return Window{cut(w.Pieces), cut(w.Speech)}
}
