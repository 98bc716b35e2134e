package diarize

import (
	"math/bits"
	"slices"
)

// rivalShare is the share of the smaller group's windows that must have been heard
// beside the other group's, as another voice of the same window of the segmenter,
// for the two to be rivals, which are hardly ever joined. From 0.15 to 0.35 the result is the same on the
// conversations of TestOverlappingConversations; above 0.5 voices that are alike
// are joined.
const rivalShare = 0.25

// rivalLeast is how many windows that must be at least: a segmenter that parts one
// voice in two for a moment is heard by the two tiles that it lies in. Less makes two
// speakers of a voice, more joins voices that are alike.
const rivalLeast = 3

// rivalLikeness is how alike the centroids of rivals are at most, between the cosine of
// one voice (0) and 1: above it they are one voice that the segmenter parted in two.
const rivalLikeness = 0.25

// neighbor is an embedded window as one tile hears it.
type neighbor struct{ window, local int }

// company is what one tile hears.
type company struct {
	windows []neighbor
	beside  [maxLocal]int // samples of the tile's middle in which a local speaker speaks with others
}

// neighbors lists, for each tile, the windows that lie in it and the local speaker
// of each, and how long each speaks with others; nil without a segmenter.
func (e *Embeddings) neighbors() []company {
	if e.scene == nil {
		return nil
	}
	out := make([]company, len(e.scene.tiles))
	first := 0
	for i, t := range e.scene.tiles {
		for first < len(e.Windows) && e.Windows[first].End <= t.window.Start {
			first++
		}
		for j := first; j < len(e.Windows) && e.Windows[j].Start < t.window.End; j++ {
			middle := (e.Windows[j].Start + e.Windows[j].End) / 2
			if middle < t.window.Start || middle >= t.window.End {
				continue
			}
			if who := t.at(middle); bits.OnesCount8(who) == 1 {
				out[i].windows = append(out[i].windows, neighbor{j, bits.TrailingZeros8(who)})
			}
		}
		for at := t.middle.Start; at < t.middle.End; at += sceneStep {
			who := t.at(at)
			if bits.OnesCount8(who) < 2 {
				continue
			}
			for ; who != 0; who &= who - 1 {
				out[i].beside[bits.TrailingZeros8(who)] += sceneStep
			}
		}
	}
	return out
}

// selected renumbers neighbors for a selection of the windows: number[i] is the
// place of window i in it, −1 where it is left out.
func selected(all []company, number []int) []company {
	if all == nil {
		return nil
	}
	out := make([]company, len(all))
	for i, tile := range all {
		out[i].beside = tile.beside
		for _, n := range tile.windows {
			if to := number[n.window]; to >= 0 {
				out[i].windows = append(out[i].windows, neighbor{to, n.local})
			}
		}
	}
	return out
}

// tally counts a tile's windows by local speaker and base cluster.
func (s *sums) tally(tile company, counts []int) {
	clear(counts)
	for _, n := range tile.windows {
		counts[n.local*len(s.count)+s.base[n.window]]++
	}
}

// rivalry counts, for each pair of base clusters, the windows that were heard as
// different voices of one tile: per tile and pair of local speakers the smaller
// number. It is nil without a segmenter.
func (s *sums) rivalry(all []company) []float64 {
	if all == nil {
		return nil
	}
	k := len(s.count)
	out, counts := make([]float64, k*k), make([]int, maxLocal*k)
	for _, tile := range all {
		s.tally(tile, counts)
		for a := range maxLocal {
			for b := range maxLocal {
				if a == b {
					continue
				}
				for i, m := range counts[a*k : (a+1)*k] {
					if m == 0 {
						continue
					}
					for j, n := range counts[b*k : (b+1)*k] {
						out[i*k+j] += float64(min(m, n))
					}
				}
			}
		}
	}
	return out
}

// companionship counts the samples in which the speakers of the base clusters speak with
// others: for each local speaker of a tile, those of the cluster that has most of its
// windows there. It is nil without a segmenter.
func (s *sums) companionship(all []company) []int {
	if all == nil {
		return nil
	}
	k := len(s.count)
	out, counts := make([]int, k), make([]int, maxLocal*k)
	for _, tile := range all {
		s.tally(tile, counts)
		for local, samples := range tile.beside {
			own := counts[local*k : (local+1)*k]
			if most := slices.Index(own, slices.Max(own)); own[most] > 0 {
				out[most] += samples
			}
		}
	}
	return out
}

// groupRivalry sums the rivalry of base clusters by groups.
func (s *sums) groupRivalry(group []int, n int) []float64 {
	if s.rivals == nil {
		return nil
	}
	out, k := make([]float64, n*n), len(group)
	for i, g := range group {
		for j, h := range group {
			out[g*n+h] += s.rivals[i*k+j]
		}
	}
	return out
}

// sizes counts the vectors of each group.
func (s *sums) sizes(group []int, n int) []float64 {
	out := make([]float64, n)
	for c, g := range group {
		out[g] += float64(s.count[c])
	}
	return out
}

// areRivals reports whether groups a and b, of these sizes and with this rivalry, were
// heard as two voices.
func areRivals(rivals, sizes []float64, a, b int) bool {
	return rivals != nil && rivals[a*len(sizes)+b] >= max(rivalLeast, rivalShare*min(sizes[a], sizes[b]))
}
