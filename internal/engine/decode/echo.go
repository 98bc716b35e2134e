package decode

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/floats"

	"github.com/otograph/otograph/audio"
)

// If a recording repeats a sentence (an announcement, a jingle, a refrain), a
// recognizer of whole windows may write it only once. Such copies are detected
// by their waveform, which no second utterance has.
const (
	// echoHop is the number of samples of a frame, and echoReach the number of
	// frames compared on either side of a frame. Lags are searched in steps of
	// echoEach samples, and then refined to one sample.
	echoHop, echoReach, echoEach = audio.SampleRate / 50, 10, 4
	// leastEcho is the least length and lag of a copy, in frames.
	leastEcho = 50
	// echoLikeness is the least correlation of a copy with its original, as
	// with noise 6 dB below the speech.
	echoLikeness = 0.8
	// echoQuiet is the energy of a pause as a share of the mean.
	echoQuiet = 0.02
	// mostLags is the number of lags, the most likely ones, that are compared
	// until one has copies. leastLag is the least correlation of the window at
	// such a lag.
	mostLags, leastLag = 12, 0.04
)

// Echo is a stretch of a window whose sound repeats an earlier one.
type Echo struct {
	window        Window
	from, to, lag float64 // seconds of the window
}

// Distinct returns a window without the stretches whose sound repeats an earlier
// one of the window, and these stretches in order.
func (f *Finder) Distinct(w Window, pcm *audio.PCM) (distinct Window, echoes []Echo) {
	const seconds = float64(echoHop) / audio.SampleRate // of a frame
	f.mu.Lock()
	list := f.copies(w, pcm)
	f.mu.Unlock()
	distinct = w
	for _, c := range slices.Backward(list) {
		distinct = distinct.without(c.from*echoHop, c.to*echoHop)
	}
	for _, c := range list {
		lag := float64(c.lag) / audio.SampleRate
		for from, to := float64(c.from)*seconds, float64(c.to)*seconds; from < to; from += lag {
			echoes = append(echoes, Echo{w, from, min(from+lag, to), lag})
		}
	}
	return distinct, echoes
}

// without returns the window without the sound between two of its samples.
func (w Window) without(from, to int) Window {
	a, b := w.Time(float64(from)/audio.SampleRate), w.Time(float64(to)/audio.SampleRate)
	before, after := w.Part(0, a), w.Rest(b)
	slight := func(s audio.Span) bool { return s.Len() < sliver*audio.SampleRate }
	return Window{slices.Concat(before.Pieces, after.Pieces), slices.DeleteFunc(slices.Concat(before.Speech, after.Speech), slight)}
}

// Repeat returns words with copies of the echoes' original words.
func Repeat(words []Word, echoes []Echo) []Word {
	for _, e := range echoes {
		at := func(t float64) float64 { return float64(e.window.Len()-e.window.Rest(t).Len()) / audio.SampleRate }
		var again []Word
		for _, w := range words {
			middle := (w.Start + w.End) / 2
			if t := at(middle) + e.lag; t < e.from || t >= e.to || len(e.window.Part(middle, middle+shortest).Pieces) == 0 {
				continue
			}
			w.Start, w.End = e.window.Time(at(w.Start)+e.lag), e.window.Time(at(w.End)+e.lag)
			again = append(again, w)
		}
		from, next := e.window.Time(e.from), 0
		for next < len(words) && words[next].Start < from {
			next++
		}
		words = slices.Insert(slices.Clip(words), next, again...)
	}
	return words
}

// copied is a stretch whose sound repeats an earlier one: its first frame, the
// frame after it, and the lag in samples.
type copied struct{ from, to, lag int }

// Finder finds repeated sound in one window after the other. It reuses its
// memory of some 20 MB. It is safe for concurrent use.
type Finder struct {
	mu          sync.Mutex
	samples     []float32
	sound, left []float64 // the compared sound, and the same without copies
	padded      []float64
	spectrum    []complex128
	transform   *fourier.FFT
	cosines     *fourier.DCT // of the transform's power, which is real and even
}

// copies returns the stretches of a window that repeat earlier ones, in order.
func (f *Finder) copies(w Window, pcm *audio.PCM) (list []copied) {
	f.samples = w.Samples(f.samples[:0], pcm)
	sound := f.lowSound()
	if len(sound) <= 2*leastEcho*echoHop {
		return nil
	}
	c := comparison{sound: sound, own: make([]float64, len(sound)/echoHop+1)}
	for i := range len(sound) / echoHop {
		x := sound[i*echoHop : (i+1)*echoHop]
		c.own[i+1] = c.own[i] + floats.Dot(x, x)
	}
	c.quiet = echoQuiet * c.own[len(c.own)-1] / float64(len(c.own)-1)
	c.pause = slices.Repeat([]bool{true}, len(c.own))
	for _, s := range w.Spoken() {
		for i := s.Start/echoHop + 1; i < min(s.End/echoHop, len(c.pause)-1); i++ { // its borders are pauses
			c.pause[i] = around(c.own, i, 1) < 3*c.quiet
		}
	}
	f.left = append(f.left[:0], sound...)
	taken, lags := make([]bool, len(c.own)), f.autocorrelation()
	const first = leastEcho * echoHop / echoEach
	for tries := 0; tries < mostLags; tries++ {
		at := first + floats.MaxIdx(lags[first:])
		if lags[at] <= leastLag*lags[0] {
			break
		}
		before := len(list)
		for _, n := range c.copies(f.refined(at * echoEach)) {
			list = append(list, f.take(n, taken)...)
		}
		if len(list) == before {
			clear(lags[at-echoHop/echoEach/2 : min(at+echoHop/echoEach/2, len(lags))])
			continue
		}
		lags, tries = f.autocorrelation(), -1 // copies with other lags may now stand out
	}
	slices.SortFunc(list, func(a, b copied) int { return a.from - b.from })
	return list
}

// take removes a copy from the sound and returns its parts that were not taken.
func (f *Finder) take(c copied, taken []bool) (list []copied) {
	for i := c.from; i < c.to; i++ {
		from := i
		for ; i < c.to && !taken[i]; i++ {
			taken[i] = true
		}
		if i-from >= echoReach {
			list = append(list, copied{from, i, c.lag})
			clear(f.left[from*echoHop : i*echoHop])
		}
	}
	return list
}

// Sized returns a slice of n values in the memory of s, if that suffices.
func Sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// lowSound returns the sound without its lowest and highest frequencies, so
// that hum and direct current do not correlate, and noise correlates little.
func (f *Finder) lowSound() []float64 {
	const mean = audio.SampleRate / 125
	f.sound = Sized(f.sound, max(len(f.samples)-mean, 0)/echoHop*echoHop)
	var long float64 // the sum of mean samples from i on
	for _, x := range f.samples[:min(mean, len(f.samples))] {
		long += float64(x)
	}
	for i := range f.sound {
		var short float64
		for _, x := range f.samples[i+mean/2 : i+mean/2+echoEach] {
			short += float64(x)
		}
		f.sound[i] = short/echoEach - long/mean
		long += float64(f.samples[i+mean]) - float64(f.samples[i])
	}
	return f.sound
}

// autocorrelation returns the correlation of the sound left with itself at each
// lag that leaves leastEcho frames, by echoEach samples, without normalization.
func (f *Finder) autocorrelation() []float64 {
	n := len(f.left) / echoEach
	size := 1 << bits.Len(uint(2*n-1))
	if f.transform == nil || f.transform.Len() != size {
		f.transform, f.cosines = fourier.NewFFT(size), fourier.NewDCT(size/2+1)
	}
	f.padded, f.spectrum = Sized(f.padded, size), Sized(f.spectrum, size/2+1)
	clear(f.padded)
	for i := range n {
		f.padded[i] = f.left[i*echoEach]
	}
	f.transform.Coefficients(f.spectrum, f.padded)
	power := f.padded[:len(f.spectrum)]
	for i, c := range f.spectrum {
		power[i] = real(c)*real(c) + imag(c)*imag(c)
	}
	return f.cosines.Transform(power, power)[:n-leastEcho*echoHop/echoEach]
}

// refined returns the lag near one at which the sound left correlates most.
func (f *Finder) refined(lag int) (best int) {
	most := math.Inf(-1)
	for l := lag - echoEach + 1; l < lag+echoEach; l++ {
		if x := floats.Dot(f.left[l:], f.left[:len(f.left)-l]); x > most {
			best, most = l, x
		}
	}
	return best
}

// comparison compares a window's sound with itself.
type comparison struct {
	sound []float64
	own   []float64 // the energy before each frame
	quiet float64   // the energy of a frame in a pause
	pause []bool    // by frame
}

// around returns the part of a sum in the frames up to reach from frame i.
func around(sums []float64, i, reach int) float64 {
	return sums[min(i+reach+1, len(sums)-1)] - sums[max(i-reach, 0)]
}

// copies returns the stretches between pauses that repeat the sound of lag
// before.
func (c *comparison) copies(lag int) (list []copied) {
	n, first := len(c.own)-1, (lag+echoHop-1)/echoHop
	both, earlier := make([]float64, n+1), make([]float64, n+1)
	for i := first; i < n; i++ {
		x, y := c.sound[i*echoHop:(i+1)*echoHop], c.sound[i*echoHop-lag:(i+1)*echoHop-lag]
		both[i+1], earlier[i+1] = both[i]+floats.Dot(x, y), earlier[i]+floats.Dot(y, y)
	}
	like := func(i int) bool {
		i = max(i, first+echoReach)
		return around(both, i, echoReach) >= echoLikeness*math.Sqrt(around(c.own, i, echoReach)*around(earlier, i, echoReach))
	}
	pause := func(i int) bool { return i == n || c.pause[i] || c.pause[i-lag/echoHop] }
	for i := first; i < n; i++ {
		from, to := i, i
		for ; i < n && (like(i) || c.pause[i] && c.pause[i-lag/echoHop]); i++ {
			if like(i) {
				to = i + 1
			}
		}
		for from < to && !pause(from) {
			from++
		}
		for to > from && !pause(to) {
			to--
		}
		if to-from >= leastEcho && c.own[to]-c.own[from] >= leastEcho*c.quiet {
			list = append(list, copied{from, to, lag})
		}
	}
	return list
}
