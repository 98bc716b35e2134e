package scores

import "slices"

// maxAlignment limits the cells of an alignment that is traced back: two texts
// of 16,000 words temporarily take 256 MB.
const maxAlignment = 256 << 20

// Edit is a position of an alignment: the indices of a unit of the reference
// and of the hypothesis, −1 for a unit that the other lacks.
type Edit struct{ Reference, Hypothesis int }

// Align aligns two lists with the fewest errors, as CompareWords does. ok is
// false if they are too long to trace back (more than 16,000 in both).
func Align(reference, hypothesis []string) (edits []Edit, ok bool) {
	if len(reference)*len(hypothesis) > maxAlignment {
		return nil, false
	}
	words := interned{}
	ref, hyp := words.of(reference), words.of(hypothesis)
	first, last := common(ref, hyp)
	middle := hyp[first : len(hyp)-last]
	steps := make([]step, (len(ref)-last-first)*len(middle))
	count(ref[first:len(ref)-last], middle, jiwerRule, steps)
	i, j := len(ref), len(hyp)
	for i > 0 || j > 0 {
		how := diagonal
		switch {
		case i > len(ref)-last || i <= first && j <= first:
		case j <= first:
			how = deletion
		case i <= first:
			how = insertion
		default:
			how = steps[(i-first-1)*len(middle)+j-first-1]
		}
		switch how {
		case deletion:
			i--
			edits = append(edits, Edit{i, -1})
		case insertion:
			j--
			edits = append(edits, Edit{-1, j})
		default:
			i, j = i-1, j-1
			edits = append(edits, Edit{i, j})
		}
	}
	slices.Reverse(edits)
	return edits, true
}
