package diarize

import "slices"

// ward joins the base clusters step by step (J. H. Ward, "Hierarchical grouping
// to optimize an objective function", 1963): each step joins the two groups
// whose union adds least to the squared distances of the vectors from their
// group's mean. Average linkage, which made the base clusters, splits off
// outlying windows first, and two voices of real people last.
func (s *sums) ward() []merge {
	k := len(s.count)
	size, dots := s.sizes(counting(k), k), slices.Clone(s.gram)
	cost := func(a, b int) float64 {
		n, m := size[a], size[b]
		return n * m / (n + m) * (dots[a*k+a]/(n*n) + dots[b*k+b]/(m*m) - 2*dots[a*k+b]/(n*m))
	}
	out := make([]merge, 0, max(k-1, 0))
	for len(out) < k-1 {
		best, least := merge{a: -1}, 0.0
		for a := range k {
			if size[a] == 0 {
				continue
			}
			for b := a + 1; b < k; b++ {
				if size[b] == 0 {
					continue
				}
				if c := cost(a, b); best.a < 0 || c < least {
					best, least = merge{a: a, b: b}, c
				}
			}
		}
		a, b := best.a, best.b
		for c := range k {
			dots[a*k+c] += dots[b*k+c]
		}
		for c := range k {
			dots[c*k+a] += dots[c*k+b]
		}
		size[a], size[b] = size[a]+size[b], 0
		out = append(out, best)
	}
	return out
}
