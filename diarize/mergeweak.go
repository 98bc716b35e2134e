package diarize

import (
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
)

// A cluster below leastSpeech seconds, or below leastShare of all speech, is
// not a separate speaker: otherwise a few outlying windows (a laugh, a cough,
// overlapping voices) would count as one, and in long recordings such windows
// are more frequent and resemble each other.
const (
	leastSpeech = 2.0   // seconds
	leastShare  = 0.003 // the larger limit from eleven minutes of speech on
)

// enough returns the seconds of speech that a speaker needs.
func (s *sums) enough(windows []audio.Span) float64 {
	all := s.seconds(make([]int, len(s.count)), 1, windows)[0]
	return max(leastSpeech, leastShare*all)
}

// mergeWeak joins groups of base clusters. A group is weak if it has less than
// enough seconds or is doubtful. The smallest weak group joins its nearest strong
// neighbor, until none is weak. Then the two groups that are most likely one
// voice are joined, until nearest finds no more. At least least groups remain.
// The result maps base clusters to groups 0 … n−1.
//
// windows are the spans of the vectors, in order of time.
func (s *sums) mergeWeak(group []int, windows []audio.Span, enough, same float64, least int) (merged []int, n int) {
	merged, n = slices.Clone(group), slices.Max(group)+1
	usual := s.likeness(merged, n).usual
	for n > max(least, 1) {
		alike, unfit := s.likeness(merged, n), make([]bool, n)
		cos, together := s.centroidCosines(merged, n), s.groupCooccurrence(merged, n)
		for g := range unfit {
			unfit[g] = alike.doubtful(g, usual)
		}
		from, targets := weakest(s.seconds(merged, n, windows), unfit, enough)
		var to int
		if from >= 0 {
			to = mostSimilar(from, targets, cos[from*n:])
		} else {
			var cosine float64
			if to, from, cosine = alike.nearest(cos, together, same, s.stated); cosine < same { // all remaining groups are different voices
				break
			}
		}
		n--
		mergeInto(merged, from, to, n)
	}
	return byFirstAppearance(merged), n
}

// joinWeak joins the groups with less than enough seconds with their nearest
// strong neighbors. At least least groups remain.
func (s *sums) joinWeak(group []int, windows []audio.Span, enough float64, least int) (merged []int, n int) {
	merged, n = slices.Clone(group), slices.Max(group)+1
	for n > max(least, 1) {
		cos := s.centroidCosines(merged, n)
		from, targets := weakest(s.seconds(merged, n, windows), make([]bool, n), enough)
		if from < 0 {
			break
		}
		n--
		mergeInto(merged, from, mostSimilar(from, targets, cos[from*(n+1):]), n)
	}
	return byFirstAppearance(merged), n
}

// weakest returns the weak group with the least speech, or −1, and the groups
// that it may join: the strong ones, or all others if none is strong.
func weakest(seconds []float64, unfit []bool, enough float64) (from int, targets []int) {
	from, targets = -1, make([]int, 0, len(seconds))
	for g := range seconds {
		if seconds[g] >= enough && !unfit[g] {
			targets = append(targets, g)
		} else if from < 0 || seconds[g] < seconds[from] {
			from = g
		}
	}
	if len(targets) == 0 {
		targets = counting(len(seconds))
	}
	return from, targets
}

// mostSimilar returns the target, other than from, whose centroid is most
// similar to from's; cos holds from's cosines with the groups.
func mostSimilar(from int, targets []int, cos []float64) int {
	to, best := -1, math.Inf(-1)
	for _, g := range targets {
		if g != from && cos[g] > best {
			to, best = g, cos[g]
		}
	}
	return to
}

// nearest returns the two groups a < b that are most likely one voice, and
// their cosine, at least same; −Inf if there are none. Below the difference
// oneVoice two groups are one voice, from oneVoice on only if the model states
// its own threshold and their cosine reaches it; from twoVoices on, and for
// groups that cannot be linked, the cosine must be higher (repeatedSimilarity,
// cannotLinkSimilarity).
func (l likeness) nearest(cos, together []float64, same float64, stated bool) (a, b int, cosine float64) {
	cosine = math.Inf(-1)
	n := len(l.sizes)
	parted, repeated := same+cannotLinkSimilarity*(1-same), same+repeatedSimilarity*(1-same)
	for i := range n {
		for j := i + 1; j < n; j++ {
			c, d := cos[i*n+j], l.difference(i, j)
			if d >= oneVoice && (!stated || c < same || c < repeated && d >= twoVoices || c < parted && cannotLink(together, l.sizes, i, j)) {
				continue
			}
			if c = max(c, same); c > cosine {
				a, b, cosine = i, j, c
			}
		}
	}
	return a, b, cosine
}

// mergeInto moves the members of from to to; group last becomes from.
func mergeInto(group []int, from, to, last int) {
	for i, g := range group {
		if g == from {
			g = to
		}
		if g == last {
			g = from
		}
		group[i] = g
	}
}

// seconds returns the speech of each group: the union of its windows.
func (s *sums) seconds(group []int, n int, windows []audio.Span) []float64 {
	samples := make([]int, n)
	covered := make([]int, n)
	for i, w := range windows {
		g := group[s.base[i]]
		if from := max(w.Start, covered[g]); from < w.End {
			samples[g] += w.End - from
			covered[g] = w.End
		}
	}
	out := make([]float64, n)
	for g, v := range samples {
		out[g] = float64(v) / audio.SampleRate
	}
	return out
}

// centroidCosines returns the n × n matrix of cosines of the groups' means.
func (s *sums) centroidCosines(group []int, n int) []float64 {
	k := len(group)
	cos := make([]float64, n*n) // first the dot products of the groups' sums
	for a, ga := range group {
		for b, gb := range group {
			cos[ga*n+gb] += s.gram[a*k+b]
		}
	}
	length := make([]float64, n)
	for g := range n {
		length[g] = math.Sqrt(max(cos[g*n+g], 0))
	}
	for a := range n {
		for b := range n {
			if l := length[a] * length[b]; l > 0 {
				cos[a*n+b] /= l
			} else {
				cos[a*n+b] = 0
			}
		}
	}
	return cos
}
