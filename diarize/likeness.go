package diarize

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/otograph/otograph/audio"
)

// Windows of a voice are similar anywhere in the recording. Windows of
// laughter, knocking and overlapping voices are similar only where they
// overlap, with the same sound in them. So pairs of windows that do not
// overlap, compared with the usual similarity in the recording, show whether a
// small group is a voice and whether two groups are one, for any embedder's
// scale.
const (
	leastLikeness     = 0.5 // share of the usual likeness that a voice's own windows reach
	smallGroup        = 0.1 // share of the windows below which a group must reach leastLikeness
	windowsPerOutlier = 200 // windows of a recording for which a group must outweigh one dissimilar pair
)

// Differences of two groups (likeness.difference). They were chosen on seven
// recordings of real people with a published embedder, and kept the simulated
// recordings (TestCountingVoices) and the synthetic voices right; see
// docs/measurements/speakers.md for the figures.
const (
	oneVoice  = 0.17 // below it two groups are parts of one voice
	twoVoices = 0.5  // from it on two groups are two voices, unless the model's own threshold is far exceeded
	fewer     = 3.0  // windows of the smaller group that halve the difference
	ownUsual  = 4    // windows from which a group's own likeness is measured

	// repeatedSimilarity is the cosine, between the model's threshold (0) and
	// 1, from which two groups are one voice even if their difference is that
	// of two voices: sounds that a recording repeats exactly (a loop) make the
	// rest of a voice differ. In 70 recordings of people no two voices come
	// near it.
	repeatedSimilarity = 0.5
)

// overlaps holds, for each pair of base clusters, the number of window pairs
// that overlap in time and the sum of their cosines.
type overlaps struct {
	pairs   []int
	cosines []float64
	all     int
}

// overlapping finds the pairs of windows, ordered by time, that overlap.
func (s *sums) overlapping(x matrix, windows []audio.Span) overlaps {
	k := len(s.count)
	o := overlaps{pairs: make([]int, k*k), cosines: make([]float64, k*k)}
	for i, w := range windows {
		for j := i + 1; j < len(windows) && windows[j].Start < w.End; j++ {
			at := s.base[i]*k + s.base[j]
			o.pairs[at]++
			o.all++
			o.cosines[at] += float64(dot1(x.row(i), x.row(j)))
		}
	}
	return o
}

// likeness holds how similar the windows of groups are.
type likeness struct {
	sizes  []float64
	cosine []float64 // [group × group]: mean over the pairs that do not overlap; 0 without a pair
	pairs  []float64 // [group × group]: twice the pairs within a group
	usual  float64   // mean within a group, weighted by size
}

// likeness compares n groups of base clusters.
func (s *sums) likeness(group []int, n int) likeness {
	l := likeness{sizes: s.sizes(group, n), cosine: make([]float64, n*n), pairs: make([]float64, n*n)}
	k := len(group)
	for a, g := range group {
		for b, h := range group {
			at := a*k + b
			l.cosine[g*n+h] += s.gram[at] - s.overlaps.cosines[at]
			l.pairs[g*n+h] += float64(s.count[a]*s.count[b] - s.overlaps.pairs[at])
			l.cosine[h*n+g] -= s.overlaps.cosines[at]
			l.pairs[h*n+g] -= float64(s.overlaps.pairs[at])
		}
		l.cosine[g*n+g] -= float64(s.count[a]) // without the pairs of a window with itself
		l.pairs[g*n+g] -= float64(s.count[a])
	}
	for i, pairs := range l.pairs {
		if pairs < 0.5 {
			l.cosine[i], l.pairs[i] = 0, 0
		} else {
			l.cosine[i] /= pairs
		}
	}
	members := 0.0
	for g, size := range l.sizes {
		if at := g*n + g; l.pairs[at] > 0 {
			l.usual += size * l.cosine[at]
			members += size
		}
	}
	l.usual /= max(members, 1)
	return l
}

// doubtful reports whether group g is small and its windows are less similar
// than a voice's usually are.
func (l likeness) doubtful(g int, usual float64) bool {
	all := floats.Sum(l.sizes)
	at := g*len(l.sizes) + g
	pairs := l.pairs[at] / 2
	return l.sizes[g] < smallGroup*all && l.cosine[at]*pairs < leastLikeness*usual*(pairs+math.Floor(all/windowsPerOutlier))
}

// difference returns how much less similar windows of groups g and h are to
// each other than within each group, in units of the noise of the recording's
// windows (one minus their usual similarity). Two parts of a voice differ a
// little, split by their words. Few windows count for less.
func (l likeness) difference(g, h int) float64 {
	n := len(l.sizes)
	own := func(g int) float64 {
		if at := g*n + g; l.sizes[g] >= ownUsual && l.cosine[at] > 0 {
			return l.cosine[at]
		}
		return l.usual
	}
	if l.pairs[g*n+h] == 0 {
		return 0
	}
	within := max(math.Sqrt(own(g)*own(h)), 0.01)
	noise := max(1-l.usual, 0.01) / max(l.usual, 0.01)
	return (1 - l.cosine[g*n+h]/within) / noise / (1 + fewer/min(l.sizes[g], l.sizes[h]))
}
