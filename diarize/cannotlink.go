package diarize

import "math/bits"

// cannotLinkShare is the share of the smaller group's windows that must occur
// beside windows of the other group, as another voice in the same window of the
// segmenter, for a cannot-link constraint: the two groups are hardly ever
// joined. From 0.15 to 0.35 the result is the same on the conversations of
// TestOverlappingConversations; above 0.5 similar voices are joined.
const cannotLinkShare = 0.25

// cannotLinkLeast is the least number of such windows: if a segmenter briefly
// splits one voice in two, two tiles contain the split. A lower limit makes two
// speakers of one voice, a higher one joins similar voices.
const cannotLinkLeast = 3

// cannotLinkSimilarity is the greatest similarity of the centroids of two
// groups with a cannot-link constraint, between the cosine of one voice (0) and
// 1: groups above it are one voice that the segmenter split in two.
const cannotLinkSimilarity = 0.25

// localWindow is an embedded window and its local speaker in one tile.
type localWindow struct{ window, local int }

// windowsByTile lists each tile's windows and local speakers; nil without any.
func (e *Embeddings) windowsByTile() [][]localWindow {
	if e.scene == nil {
		return nil
	}
	out := make([][]localWindow, len(e.scene.tiles))
	first := 0
	for i, t := range e.scene.tiles {
		for first < len(e.Windows) && e.Windows[first].End <= t.window.Start {
			first++
		}
		for j := first; j < len(e.Windows) && e.Windows[j].Start < t.window.End; j++ {
			middle := (e.Windows[j].Start + e.Windows[j].End) / 2
			if who := t.at(middle); middle >= t.window.Start && middle < t.window.End && bits.OnesCount8(who) == 1 {
				out[i] = append(out[i], localWindow{j, bits.TrailingZeros8(who)})
			}
		}
	}
	return out
}

// selected renumbers windowsByTile for a selection of the windows: number[i] is
// the index of window i in the selection, −1 if it is not selected.
func selected(all [][]localWindow, number []int) [][]localWindow {
	if all == nil {
		return nil
	}
	out := make([][]localWindow, len(all))
	for i, tile := range all {
		for _, n := range tile {
			if to := number[n.window]; to >= 0 {
				out[i] = append(out[i], localWindow{to, n.local})
			}
		}
	}
	return out
}

// cooccurrence counts, for each pair of base clusters, the windows that are
// different voices in one tile: per tile and pair of local speakers the smaller
// number. It returns nil without a segmenter.
func (s *sums) cooccurrence(all [][]localWindow) []float64 {
	if all == nil {
		return nil
	}
	k := len(s.count)
	out, counts := make([]float64, k*k), make([]int, maxLocal*k)
	for _, tile := range all {
		clear(counts)
		for _, n := range tile {
			counts[n.local*k+s.base[n.window]]++
		}
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

// groupCooccurrence sums the co-occurrence of base clusters by groups.
func (s *sums) groupCooccurrence(group []int, n int) []float64 {
	if s.together == nil {
		return nil
	}
	out, k := make([]float64, n*n), len(group)
	for i, g := range group {
		for j, h := range group {
			out[g*n+h] += s.together[i*k+j]
		}
	}
	return out
}

func (s *sums) sizes(group []int, n int) []float64 {
	out := make([]float64, n)
	for c, g := range group {
		out[g] += float64(s.count[c])
	}
	return out
}

// cannotLink reports whether groups a and b were detected as two voices, given
// their sizes and co-occurrence.
func cannotLink(together, sizes []float64, a, b int) bool {
	return together != nil && together[a*len(sizes)+b] >= max(cannotLinkLeast, cannotLinkShare*min(sizes[a], sizes[b]))
}
