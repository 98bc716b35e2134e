package subtitle

import (
	"math"
	"strings"
	"unicode/utf8"
)

const (
	// longPause (seconds) between two words ends a cue, because a text
	// displayed during a silence reveals the following words too early.
	longPause = 2
	// shortest is the minimum duration of a cue (seconds).
	shortest = 0.8
)

// The costs of a division into pages, and of a page into lines.
const (
	costPage     = 0.5 // of each page
	costSlack    = 1   // of an empty page, multiplied by the square of its empty share
	costClause   = 0.3 // of an end at a clause instead of a sentence
	costBreak    = 4   // of an end inside a clause
	costLine     = 1e3 // of each line of a page
	costUneven   = 16  // of a full line, multiplied by the square of its share
	costBrief    = 4   // for each missing second of a page that is too short
	worthOfPause = 4   // for each second of a pause there, up to one
)

// pages divides a voice's text from start to end into pages of at most lines
// lines, at the lowest cost, with free columns before the first line.
func (t typesetter) pages(start, end float64, v voice, lines, further int) []page {
	lead := t.lead(v.speaker, further)
	all := v.atoms
	var out []page
	for from := 0; from < len(all); {
		to := from
		for to++; to < len(all) && all[to].start-all[to-1].end < longPause; {
			to++
		}
		for _, n := range t.divide(all[from:to], lines, lead) {
			part := all[from : from+n]
			p := page{start: part[0].start, end: part[n-1].end, voices: []voice{{v.speaker, part, t.wrap(part, lead)}}}
			if from == 0 {
				p.start = start
			}
			from += n
			if from == len(all) {
				p.end = end
			} else if from < to { // stay until the next page
				p.end = all[from].start
			}
			out = append(out, p)
		}
	}
	return out
}

// divide returns the number of atoms of each page of the cheapest division.
func (t typesetter) divide(atoms []atom, lines, lead int) []int {
	return cheapest(len(atoms), func(i, j int) (cost float64, fits bool) {
		first, last := atoms[i], atoms[j-1]
		slack := max(0, 1-float64(total(atoms[i:j]))/float64(t.MaxColumns*lines-lead))
		cost = costPage + costSlack*slack*slack
		if j < len(atoms) {
			cost += breakCost(last, atoms[j]) + costBrief*max(0, shortest-(atoms[j].start-first.start))
		}
		return cost, t.filled(atoms[i:j], lead) <= lines && last.end-first.start <= t.MaxSeconds
	})
}

// cheapest returns the lengths of the parts of the cheapest division of n
// things. cost returns the cost of the part from i to j, which may only have
// one thing if it does not fit.
func cheapest(n int, cost func(i, j int) (cost float64, fits bool)) (parts []int) {
	least := make([]float64, n+1) // the lowest cost from a thing on
	size := make([]int, n)
	for i := n - 1; i >= 0; i-- {
		least[i] = math.Inf(1)
		for j := i + 1; j <= n; j++ {
			c, fits := cost(i, j)
			if !fits && j > i+1 {
				break
			}
			if c += least[j]; c < least[i] {
				least[i], size[i] = c, j-i
			}
		}
	}
	for i := 0; i < n; i += size[i] {
		parts = append(parts, size[i])
	}
	return parts
}

// breakCost returns the cost of a new page or line between two atoms.
func breakCost(a, b atom) float64 {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(a.text, `"'”’»)]）」』】`))
	switch {
	case strings.ContainsRune(".?!。？！…．｡", last):
		return 0
	case strings.ContainsRune(",;:，；：、､—–", last):
		return costClause
	}
	return costBreak - worthOfPause*min(max(b.start-a.end, 0), 1)
}

// filled returns the number of lines that atoms fill at least.
func (t typesetter) filled(atoms []atom, lead int) int {
	lines, used, begun := 1, lead, false
	for _, a := range atoms {
		w := a.width
		if a.space && begun {
			w++
		}
		if begun && used+w > t.MaxColumns {
			lines, used, w = lines+1, 0, a.width
		}
		used, begun = used+w, true
	}
	return lines
}

// wrap divides a page into as few lines as possible, if it can at the ends of
// sentences or clauses, and as evenly as it can.
func (t typesetter) wrap(atoms []atom, lead int) (lines []string) {
	for _, n := range cheapest(len(atoms), func(i, j int) (cost float64, fits bool) {
		used := total(atoms[i:j])
		if i == 0 {
			used += lead
		}
		share := float64(used) / float64(t.MaxColumns)
		cost = costLine + costUneven*share*share
		if j < len(atoms) {
			cost += breakCost(atoms[j-1], atoms[j])
		}
		return cost, used <= t.MaxColumns
	}) {
		lines, atoms = append(lines, join(atoms[:n])), atoms[n:]
	}
	return lines
}

func total(atoms []atom) int {
	n := 0
	for i, a := range atoms {
		n += a.width
		if a.space && i > 0 {
			n++
		}
	}
	return n
}
