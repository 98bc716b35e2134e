package diarize

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/otograph/otograph/audio"
)

// Model of the windows of an embedder that states its cosines: a voice is a
// normal distribution around its own mean, and so are the means of voices. Two
// groups are one voice by the ratio of the likelihoods of one mean and two (P.
// Kenny, "Bayesian Speaker Verification with Heavy-Tailed Priors", 2010, with
// the same variance in each direction). The constants were chosen on 85
// conversations of people, up to five minutes long; blockwise and longWorth on
// 15 others, of four to fourteen minutes. See docs/measurements/speakers.md.
const (
	voiceDirections = 20.0 // dimensions in which voices differ
	voiceSpread     = 0.5  // variance between voices, in units of the variance within one
	windowWorth     = 0.6  // independent observations per window, because neighbors share sound
	mostWorth       = 40.0 // independent observations of a voice: further windows share the drift
	manyWindows     = 90.0 // windows from which mostWorth falls in proportion: a longer recording drifts more
	longWorth       = 11.0 // the least bound
	leastEvidence   = -5.0 // log likelihood ratio from which two groups are one voice
	usualPairs      = 60.0 // pairs of windows for which the stated cosine of two voices counts
	// The last two groups may be less likely one voice by up to mostEven: evenWorth
	// times the evenness, from the ratio of the usual cosines (0) to 1, above
	// someEven. One pair of windows in evenShare overlaps, else words decide it.
	someEven, evenWorth, mostEven, evenShare = 0.3, 33.0, 8.0, 3

	// evidenceClusters is the least number of base clusters if the number of
	// voices is not given. A minute and a half of speech then has single
	// windows: fewer clusters hold windows of two voices. If the number is
	// given, fewer clusters have a smaller error.
	evidenceClusters = 100
	// blockwise is the number of windows above which evidence first finds the
	// voices of blocks: all windows at once leave too many voices.
	blockwise = 2 * evidenceClusters
)

// cosines are an embedder's Cosines.
type cosines struct{ one, two float64 }

// evidence compares groups of windows as voices.
type evidence struct {
	alike []float64 // [group × group]: mean cosine of the windows, less that of two voices
	size  []float64 // windows
	noise float64   // variance of a window around its voice, per direction

	even    float64 // how much less likely one voice the last two groups may be
	settled int     // the first groups, which are never joined with each other

	observations, own []float64 // per group, from measure: its independent observations; its log likelihood as a voice
}

// newEvidence returns groups for comparison: their numbers of windows, the usual
// cosines, and the dot products of the sums of their windows' vectors.
func newEvidence(size []float64, usual cosines, product func(a, b int) float64) *evidence {
	k := len(size)
	e := &evidence{alike: make([]float64, k*k), size: size, noise: max(1-usual.one, 0.01) / voiceDirections}
	for a, n := range size {
		for b, m := range size {
			e.alike[a*k+b] = product(a, b)/(n*m) - usual.two
		}
	}
	return e
}

// evidence returns the base clusters for comparison.
func (s *sums) evidence() *evidence {
	k := len(s.count)
	e := newEvidence(s.sizes(counting(k), k), cosines{s.cosines.one, s.twoVoices()}, func(a, b int) float64 { return s.gram[a*k+b] })
	e.even = s.even
	return e
}

// twoVoices returns the usual cosine of two voices: the recording's, if the
// segmenter detects enough of them together, else the stated one.
func (s *sums) twoVoices() float64 {
	return (s.parted.cosine + usualPairs*s.cosines.two) / (float64(s.parted.pairs) + usualPairs)
}

// pairs holds a number of pairs of windows and the sum of their cosines.
type pairs struct {
	pairs  int
	cosine float64
}

// parted returns the pairs of windows that are different voices in one tile and
// do not overlap.
func parted(x matrix, windows []audio.Span, near [][]localWindow) (p pairs) {
	for _, tile := range near {
		for i, a := range tile {
			for _, b := range tile[:i] {
				if a.local != b.local && windows[b.window].End <= windows[a.window].Start {
					p.pairs++
					p.cosine += float64(dot1(x.row(a.window), x.row(b.window)))
				}
			}
		}
	}
	return p
}

// likelihood returns the log ratio of the likelihoods that n observations with
// a squared mean have with one voice and with no voice.
func (e *evidence) likelihood(square, n float64) float64 {
	spread := 1 + n*voiceSpread
	return voiceSpread*n*n*max(square, 0)/(2*e.noise*spread) - voiceDirections/2*math.Log(spread)
}

// ratio returns groups a and b's log likelihood ratio of one voice against two.
func (e *evidence) ratio(a, b int) float64 {
	k, n, m := len(e.size), e.observations[a], e.observations[b]
	aa, bb, ab := e.alike[a*k+a], e.alike[b*k+b], e.alike[a*k+b]
	both := (n*n*aa + m*m*bb + 2*n*m*ab) / ((n + m) * (n + m))
	return e.likelihood(both, n+m) - e.own[a] - e.own[b]
}

// join makes b part of a.
func (e *evidence) join(a, b int) {
	k, n, m := len(e.size), e.size[a], e.size[b]
	for c := range k {
		e.alike[a*k+c] = (n*e.alike[a*k+c] + m*e.alike[b*k+c]) / (n + m)
	}
	for c := range k {
		e.alike[c*k+a] = (n*e.alike[c*k+a] + m*e.alike[c*k+b]) / (n + m)
	}
	e.size[a], e.size[b] = n+m, 0
}

// best returns the two groups that are most likely one voice, and their ratio;
// −Inf if fewer than two remain.
func (e *evidence) best() (next merge, ratio float64) {
	ratio = math.Inf(-1)
	k := len(e.size)
	most := max(mostWorth*min(1, manyWindows/floats.Sum(e.size)), longWorth)
	e.observations, e.own = make([]float64, k), make([]float64, k)
	for g, size := range e.size {
		n := windowWorth * size
		e.observations[g] = n / (1 + n/most)
		e.own[g] = e.likelihood(e.alike[g*k+g], e.observations[g])
	}
	for a := range e.size {
		for b := max(a+1, e.settled); b < len(e.size) && e.size[a] > 0; b++ {
			if e.size[b] == 0 {
				continue
			}
			if r := e.ratio(a, b); r > ratio {
				next, ratio = merge{a: a, b: b}, r
			}
		}
	}
	return next, ratio
}

// voices joins groups step by step, the most likely pair first, and returns the
// number of groups that remain when no pair is likely one voice.
func (e *evidence) voices() (steps []merge, n int) {
	n = len(e.size)
	for next, ratio := e.best(); !math.IsInf(ratio, -1); next, ratio = e.best() {
		if n == 2 {
			ratio += e.even
		}
		if ratio >= leastEvidence && n == len(e.size)-len(steps) {
			n--
		}
		e.join(next.a, next.b)
		steps = append(steps, next)
	}
	return steps, n
}

// groups returns the voice of each group, 0 … n−1; n is at most most.
func (e *evidence) groups(most int) []int {
	steps, n := e.voices()
	return cut(steps, len(e.size), min(n, most))
}
