package diarize

import (
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
)

// A cluster below leastSpeech seconds, or below leastShare of all speech, is
// not a separate speaker: a few outlying windows (a laugh, a cough, overlapping
// voices) would otherwise pass for one, and the longer the recording, the more
// of them there are that also resemble each other.
const (
	leastSpeech = 2.0   // seconds
	leastShare  = 0.003 // decides from eleven minutes of speech on
)

// unlike is up to which share of the cosine of one voice two centroids have nothing in
// common, not even a little of the other voice in the background.
const unlike = 0.5

// enough is the speech in seconds that makes a speaker.
func (s *sums) enough(windows []audio.Span) float64 {
	all := s.seconds(make([]int, len(s.count)), 1, windows)[0]
	return max(leastSpeech, leastShare*all)
}

// tidy joins groups of base clusters. A group with less than enough seconds, a
// doubtful group and, with a segmenter, one between two others are weak:
// the smallest goes to its nearest strong neighbor, until none is left. Then the
// two that are most surely one voice are joined, until all are several (nearest).
// It stops at least groups. The result maps base
// clusters to groups 0 … n−1.
//
// windows are the spans of the vectors, in order of time.
func (s *sums) tidy(group []int, windows []audio.Span, enough, same float64, least int) (tidied []int, n int) {
	tidied, n = slices.Clone(group), slices.Max(group)+1
	usual := s.likeness(tidied, n).usual
	for n > max(least, 1) {
		alike, unfit := s.likeness(tidied, n), make([]bool, n)
		cos, rivals := s.centroidCosines(tidied, n), s.groupRivalry(tidied, n)
		for g := range unfit {
			unfit[g] = alike.doubtful(g, usual) || rivals != nil && alike.between(g, cos, rivals, same)
		}
		from, targets := weakest(s.heard(tidied, n, windows, enough, cos, same), unfit, enough)
		var to int
		if from >= 0 {
			to = mostLike(from, targets, cos[from*n:])
		} else {
			var cosine float64
			if to, from, cosine = alike.nearest(cos, rivals, same, s.stated); cosine < same { // also when all that are left are several voices
				break
			}
		}
		n--
		giveUp(tidied, from, to, n)
	}
	return byFirstAppearance(tidied), n
}

// weakest returns the weak group with the least speech, −1 without one, and the
// groups that it may join: the strong ones, or all where none is strong.
func weakest(seconds []float64, unfit []bool, enough float64) (from int, targets []int) {
	from = -1
	var all []int
	for g := range seconds {
		all = append(all, g)
		if seconds[g] >= enough && !unfit[g] {
			targets = append(targets, g)
		} else if from < 0 || seconds[g] < seconds[from] {
			from = g
		}
	}
	if len(targets) == 0 {
		targets = all
	}
	return from, targets
}

// mostLike returns the target other than from whose centroid is most like from's;
// cos are from's cosines with the groups.
func mostLike(from int, targets []int, cos []float64) int {
	to, best := -1, math.Inf(-1)
	for _, g := range targets {
		if g != from && cos[g] > best {
			to, best = g, cos[g]
		}
	}
	return to
}

// nearest returns the two groups a < b that are most surely one voice, and their cosine, at
// least same: −Inf without any. Rivals are two voices, unless their centroids are as good as
// the same. All others are one below the difference oneVoice and two from twoVoices on;
// in between they are two, unless the model states its own threshold and their cosine reaches it.
func (l likeness) nearest(cos, rivals []float64, same float64, stated bool) (a, b int, cosine float64) {
	cosine = math.Inf(-1)
	n := len(l.sizes)
	parted := same + rivalLikeness*(1-same)
	for i := range n {
		for j := i + 1; j < n; j++ {
			c, d := cos[i*n+j], l.difference(i, j)
			if d >= twoVoices || d >= oneVoice && (!stated || c < same || c < parted && areRivals(rivals, l.sizes, i, j)) {
				continue
			}
			if c = max(c, same); c > cosine {
				a, b, cosine = i, j, c
			}
		}
	}
	return a, b, cosine
}

// giveUp puts the members of from into to; the last number takes from's place.
func giveUp(group []int, from, to, last int) {
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

// seconds is the speech of each group: the union of its windows.
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

// heard is the speech of each group that shows whether it is a speaker. It is what the
// group says alone (seconds) and, where that is not enough but unlike all that the others
// say, also what it says together with others.
func (s *sums) heard(group []int, n int, windows []audio.Span, enough float64, cos []float64, same float64) []float64 {
	alone := s.seconds(group, n, windows)
	if s.besides == nil {
		return alone
	}
	together := make([]float64, n)
	for c, samples := range s.besides {
		together[group[c]] += float64(samples) / audio.SampleRate
	}
	out := slices.Clone(alone)
	for g := range out {
		if alone[g] >= enough {
			continue
		}
		like := math.Inf(-1)
		for h := range n {
			if h != g && alone[h] >= enough {
				like = max(like, cos[g*n+h])
			}
		}
		if like < unlike*min(same, DefaultSameSpeaker) {
			out[g] += together[g]
		}
	}
	return out
}

// centroidCosines is the n × n matrix of cosines between the groups' mean vectors.
func (s *sums) centroidCosines(group []int, n int) []float64 {
	k := len(group)
	cos := make([]float64, n*n) // first the products of the groups' sums
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
