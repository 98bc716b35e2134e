package scores

import "strings"

// maxCompound limits the words of a compound.
const maxCompound = 16

// CompareCompounds counts errors as CompareWords does, except that adjacent
// words of one text that together spell a word of the other are not an error,
// as in kaldialign with merge_compounds.
func CompareCompounds(reference, hypothesis []string) Errors {
	width := len(hypothesis) + 1
	rows := make([][]cell, min(maxCompound, len(reference))+1) // the last rows, the newest first
	for i := range rows {
		rows[i] = make([]cell, width)
	}
	for j := range rows[0] {
		rows[0][j] = cell{cost: j, ins: j}
	}
	for i := range reference {
		oldest := rows[len(rows)-1]
		copy(rows[1:], rows)
		rows[0] = oldest
		rows[0][0] = cell{cost: i + 1, del: i + 1}
		for j := range hypothesis {
			rows[0][j+1] = compoundCell(rows, reference[:i+1], hypothesis[:j+1])
		}
	}
	last := rows[0][len(hypothesis)]
	return Errors{last.sub, last.del, last.ins, len(reference)}
}

// compoundCell returns the cell of two texts, given the cells of shorter ones.
func compoundCell(rows [][]cell, ref, hyp []string) cell {
	i, j := len(ref), len(hyp)
	diag, above, left, change := rows[1][j-1], rows[1][j], rows[0][j-1], 1
	if ref[i-1] == hyp[j-1] {
		change = 0
	}
	cost := min(diag.cost+change, above.cost+1, left.cost+1)
	best := extend(kaldiRule(cost, diag.cost, above.cost, left.cost, change), cost, change, diag, above, left)
	for n := range spelled(ref, hyp[j-1]) {
		if n < len(rows) && rows[n][j-1].cost < best.cost {
			best = rows[n][j-1]
		}
	}
	for n := range spelled(hyp, ref[i-1]) {
		if rows[1][j-n].cost < best.cost {
			best = rows[1][j-n]
		}
	}
	return best
}

// spelled yields how many of the last words of a text, two or more, together
// spell a word.
func spelled(text []string, word string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for n := 1; n <= min(len(text), maxCompound); n++ {
			part := text[len(text)-n]
			if !strings.HasSuffix(word, part) {
				return
			}
			word = strings.TrimSuffix(word, part)
			if word == "" && part != "" {
				if n > 1 {
					yield(n)
				}
				return
			}
		}
	}
}
