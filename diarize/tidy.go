package diarize

import (
	"math"

	"github.com/otograph/otograph/audio"
)

// leastSpeech is the speech in seconds below which a cluster is no speaker of
// its own: one or two windows that stand apart (a laugh, a cough, two voices at
// once) otherwise pass for one.
const leastSpeech = 2.0

// tidy joins groups of base clusters: a group with less than leastSpeech seconds
// goes to its nearest neighbour (smallest first), then the two most alike are
// joined while their centroids' cosine is at least same. It stops at least
// groups. The result maps base clusters to groups 0 … n−1.
//
// windows are the spans of the vectors, in order of time.
func (s *sums) tidy(group []int, windows []audio.Span, same float64, least int) (tidied []int, n int) {
	tidied = byFirstAppearance(group)
	for _, g := range tidied {
		n = max(n, g+1)
	}
	for n > max(least, 1) {
		seconds := s.seconds(tidied, n, windows)
		small := 0
		for g := range seconds {
			if seconds[g] < seconds[small] {
				small = g
			}
		}
		cos := s.centroidCosines(tidied, n)
		from, to, best := small, -1, math.Inf(-1)
		if seconds[small] < leastSpeech {
			for g := range n {
				if g != small && cos[small*n+g] > best {
					to, best = g, cos[small*n+g]
				}
			}
		} else {
			for a := range n {
				for b := a + 1; b < n; b++ {
					if cos[a*n+b] > best {
						from, to, best = b, a, cos[a*n+b]
					}
				}
			}
			if best < same {
				break
			}
		}
		for c, g := range tidied {
			if g == from {
				tidied[c] = to
			}
		}
		tidied = byFirstAppearance(tidied)
		n--
	}
	return tidied, n
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
