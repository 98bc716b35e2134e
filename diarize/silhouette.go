package diarize

import "gonum.org/v1/gonum/floats"

// sums holds, for a partition of unit vectors into base clusters, the values
// that the silhouette and the centroids of every coarser partition (a union of
// base clusters) need: with cosine distance the mean distance of a vector to a
// cluster is one minus its dot product with the cluster's mean, so one product
// per vector and base cluster serves all partitions.
type sums struct {
	base  []int       // per vector: base cluster
	count []int       // per base cluster: vectors
	total [][]float64 // per base cluster: sum of its vectors
	dots  []float64   // [vector × base cluster]: vector · total
	self  []float64   // per vector: squared length (1 except for rounding)
	gram  []float64   // [base × base]: products of the totals

	together []float64 // [base × base]: windows that the segmenter gives different voices; nil without a segmenter
	overlaps overlaps
	stated   bool // the model states the cosine from which two groups are one voice
	cosines  cosines
	even     float64 // evidence.even
	parted   pairs   // of different voices in one tile
}

// newSums prepares the base partition (labels 0 … k−1).
func newSums(x matrix, base []int, k int) *sums {
	s := &sums{base: base, count: make([]int, k), total: totals(x, base, k), dots: make([]float64, x.n*k), self: make([]float64, x.n), gram: make([]float64, k*k)}
	for _, c := range base {
		s.count[c]++
	}
	for a, t := range s.total {
		for b, u := range s.total[:a+1] {
			dot := floats.Dot(t, u)
			s.gram[a*k+b], s.gram[b*k+a] = dot, dot
		}
	}
	for i := range x.n {
		row := x.row(i)
		for c, t := range s.total {
			var dot float64
			for d, v := range row {
				dot += float64(v) * t[d]
			}
			s.dots[i*k+c] = dot
		}
		for _, v := range row {
			s.self[i] += float64(v) * float64(v)
		}
	}
	return s
}

// silhouette returns the mean cosine silhouette (P. J. Rousseeuw,
// "Silhouettes", 1987) of the partition that puts base cluster c into group[c]
// (0 … groups−1). A vector alone in its group counts 0, as in scikit-learn. For
// fewer than two groups it returns −1.
func (s *sums) silhouette(group []int, groups int) float64 {
	if groups < 2 || len(s.base) == 0 {
		return -1
	}
	size := s.sizes(group, groups)
	k := len(s.count)
	dots := make([]float64, groups)
	var mean float64
	for i, c := range s.base {
		own := group[c]
		if size[own] < 2 {
			continue
		}
		clear(dots)
		for b, v := range s.dots[i*k : (i+1)*k] {
			dots[group[b]] += v
		}
		a := (size[own] - dots[own] - (1 - s.self[i])) / (size[own] - 1)
		b := -1.0
		for g := range groups {
			if g == own {
				continue
			}
			if d := 1 - dots[g]/size[g]; b < 0 || d < b {
				b = d
			}
		}
		a, b = max(a, 0), max(b, 0)
		if m := max(a, b); m > 0 {
			mean += (b - a) / m
		}
	}
	return mean / float64(len(s.base))
}
