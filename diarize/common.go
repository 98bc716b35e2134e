package diarize

// usualCommon is how alike two voices may be, as a share of the usual likeness, before
// something is taken off. The vectors of some embedders have so much in common that
// two voices pass for one. Where the model does not say
// from which cosine two groups are one voice, only the recording can tell: groups of
// many windows that are clearly two voices show how alike two voices are.
const usualCommon = 0.3

// takeOffCommon estimates what all vectors have in common beyond the usual, from groups
// that are apart, and changes the products of the base clusters to those of vectors
// without it. It returns the squared length of that part: 0 with most embedders,
// and where no groups are apart. The silhouette does not depend on it.
func (s *sums) takeOffCommon() float64 {
	k := len(s.count)
	alone := make([]int, k)
	for c := range alone {
		alone[c] = c
	}
	l := s.likeness(alone, k)
	cosines, pairs := 0.0, 0.0
	for a := range k {
		for b := range a {
			if at := a*k + b; l.apart(a, b, l.usual) {
				cosines += l.cosine[at] * l.pairs[at]
				pairs += l.pairs[at]
			}
		}
	}
	if pairs == 0 {
		return 0
	}
	common := (cosines/pairs - usualCommon*l.usual) / (1 - usualCommon)
	if common <= 0 {
		return 0
	}
	for a, n := range s.count {
		for b, m := range s.count {
			at := a*k + b
			s.gram[at] = (s.gram[at] - common*float64(n*m)) / (1 - common)
			s.overlaps.cosines[at] = (s.overlaps.cosines[at] - common*float64(s.overlaps.pairs[at])) / (1 - common)
		}
	}
	return common
}
