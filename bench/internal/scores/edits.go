// Package scores computes the error rates by which the literature compares
// transcripts with speakers, with the same figures as the programs that define
// them: the word error rate as in jiwer 4.0, cpWER and tcpWER as in MeetEval
// 0.4.3. If several alignments have the fewest errors,
// the split into substitutions, deletions and insertions follows those programs
// too. Speakers are matched by assignment, never by permutations, so that the
// cost of twenty speakers grows only with their pairs. Texts are normalized by
// the rules of programs that publish word error rates.
package scores

import "slices"

// Errors counts the differences between a hypothesis and its reference, in
// words or characters. The error rate is their sum over Reference.
type Errors struct {
	Substitutions int `json:"substitutions"`
	Deletions     int `json:"deletions"`
	Insertions    int `json:"insertions"`
	Reference     int `json:"reference"` // units in the reference
}

// Errors returns the total number of errors.
func (e Errors) Errors() int { return e.Substitutions + e.Deletions + e.Insertions }

// Rate returns errors over reference units: the word (or character) error rate
// as a fraction. Without units it is 0 for an empty hypothesis, else 1.
func (e Errors) Rate() float64 {
	if e.Reference == 0 {
		return min(1, float64(e.Errors()))
	}
	return float64(e.Errors()) / float64(e.Reference)
}

// Add returns the sum of the counts.
func (e Errors) Add(o Errors) Errors {
	return Errors{e.Substitutions + o.Substitutions, e.Deletions + o.Deletions, e.Insertions + o.Insertions, e.Reference + o.Reference}
}

// step is the last edit of an alignment.
type step byte

const (
	diagonal step = iota // the units are the same, or one replaces the other
	deletion
	insertion
)

// rule picks one of the cheapest edits that lead to a cell: cost is the cell's
// cost, diag, above and left its neighbors' (without the last unit of both, of
// the reference, of the hypothesis), change is 1 if the last units differ.
type rule func(cost, diag, above, left, change int) step

// jiwerRule breaks ties as rapidfuzz does, so that counts equal jiwer's.
func jiwerRule(cost, diag, above, left, _ int) step {
	switch {
	case cost == above+1:
		return deletion
	case left == diag-1:
		return insertion
	}
	return diagonal
}

// kaldiRule breaks ties as kaldialign does, so that counts equal MeetEval's.
func kaldiRule(_, diag, above, left, change int) step {
	switch {
	case diag+change < min(above, left)+1:
		return diagonal
	case above < left:
		return deletion
	}
	return insertion
}

// CompareWords aligns a hypothesis with its reference with the fewest errors
// and counts them as jiwer does.
func CompareWords(reference, hypothesis []string) Errors {
	words := interned{}
	ref, hyp := words.of(reference), words.of(hypothesis)
	first, last := common(ref, hyp)
	e := count(ref[first:len(ref)-last], hyp[first:len(hyp)-last], jiwerRule, nil)
	e.Reference = len(reference)
	return e
}

// common returns the lengths of the common prefix and suffix of both lists;
// rapidfuzz leaves them out of the alignment.
func common(ref, hyp []int) (first, last int) {
	for first < min(len(ref), len(hyp)) && ref[first] == hyp[first] {
		first++
	}
	for last < min(len(ref), len(hyp))-first && ref[len(ref)-1-last] == hyp[len(hyp)-1-last] {
		last++
	}
	return first, last
}

// interned numbers words.
type interned map[string]int

func (n interned) of(words []string) []int {
	out := make([]int, len(words))
	for i, w := range words {
		k, ok := n[w]
		if !ok {
			k = len(n)
			n[w] = k
		}
		out[i] = k
	}
	return out
}

// cell is the cost of an alignment with its counts.
type cell struct{ cost, sub, del, ins int }

// count aligns two lists with the fewest errors. The rule decides between equal
// alignments by neighboring cells alone, so the counts follow it without
// tracing it back. steps, if not nil, receives each cell's edit, row by row.
func count(ref, hyp []int, choose rule, steps []step) Errors {
	row := make([]cell, len(hyp)+1)
	for j := range row {
		row[j] = cell{cost: j, ins: j}
	}
	for i, r := range ref {
		diag := row[0]
		row[0] = cell{cost: i + 1, del: i + 1}
		for j, h := range hyp {
			above, left, change := row[j+1], row[j], 1
			if r == h {
				change = 0
			}
			cost := min(diag.cost+change, above.cost+1, left.cost+1)
			how := choose(cost, diag.cost, above.cost, left.cost, change)
			if steps != nil {
				steps[i*len(hyp)+j] = how
			}
			row[j+1] = extend(how, cost, change, diag, above, left)
			diag = above
		}
	}
	last := row[len(hyp)]
	return Errors{last.sub, last.del, last.ins, len(ref)}
}

// extend returns the cell that an edit leads to.
func extend(how step, cost, change int, diag, above, left cell) cell {
	var c cell
	switch how {
	case deletion:
		c = above
		c.del++
	case insertion:
		c = left
		c.ins++
	default:
		c = diag
		c.sub += change
	}
	c.cost = cost
	return c
}

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
